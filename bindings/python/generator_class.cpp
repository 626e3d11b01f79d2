// generator_class.cpp: the Python class Generator.
#include "generator_class.h"

#include <memory>
#include <string>

#include <thalweg/errors.h>
#include <thalweg/generator.h>

namespace thalweg::python {

namespace {

/// Any int, as its low 64 bits: seeds may be hashes.
std::uint64_t to_bits(const py::int_& number) {
  const std::uint64_t bits = PyLong_AsUnsignedLongLongMask(number.ptr());
  if (bits == ~std::uint64_t{0} && PyErr_Occurred()) throw_python_error();
  return bits;
}

std::shared_ptr<Generator> default_generator() {
  static auto* generator = new std::shared_ptr<Generator>(std::make_shared<Generator>());
  return *generator;
}

}  // namespace

void add_generator_class(py::module_& module) {
  py::class_<Generator, std::shared_ptr<Generator>> type(
      module, "Generator",
      R"(A stream of random numbers: a seed and a counter. What an operation draws depends on both when it is issued,
never on when it runs.

seed: an int, whose low 64 bits count; raises TypeError for what is no int. Philox4x32-10: Salmon et al., Parallel random
numbers: as easy as 1, 2, 3 (SC 2011).

>>> tw.rand(3, generator=tw.Generator(7))
tensor([0.7502, 0.0857, 0.7953])
)");
  type.def(py::init([](const py::int_& seed) { return std::make_shared<Generator>(to_bits(seed)); }),
           py::arg("seed") = 0);
  type.def_property_readonly("seed", &Generator::seed, R"(The seed, from 0 to 2**64 - 1.

>>> tw.Generator(7).seed
7
)");
  type.def_property_readonly("counter", &Generator::counter, R"(Numbers drawn so far; one gives two elements.

>>> g = tw.Generator(7)
>>> x = tw.rand(10, generator=g)
>>> g.counter
5
)");
  type.def(
      "manual_seed",
      [](std::shared_ptr<Generator> self, py::handle seed) {
        if (PyLong_Check(seed.ptr()) == 0) {
          throw DTypeError(std::string("manual_seed: seed must be an int, not ") +
                           Py_TYPE(seed.ptr())->tp_name);
        }
        self->set(to_bits(py::reinterpret_borrow<py::int_>(seed)), 0);
        return self;
      },
      py::arg("seed"),
      R"(Begins the stream of `seed`, any int, whose low 64 bits count. Returns the generator.

Raises TypeError for what is no int. PyTorch's Generator.manual_seed.

>>> g = tw.Generator()
>>> tw.rand(3, generator=g.manual_seed(7))
tensor([0.7502, 0.0857, 0.7953])
)");
  type.def("take", &Generator::take, py::arg("draws"), R"(Takes `draws` numbers; the first one's counter.

Raises TypeError for a negative number.

>>> g = tw.Generator(7)
>>> g.take(3), g.take(1)
(0, 3)
)");
  type.def("put_back", &Generator::put_back, py::arg("first"), py::arg("draws"),
           R"(Gives back what take gave, unless others have taken since: for a call that failed.

Raises TypeError for negative numbers.

>>> g = tw.Generator(7)
>>> first = g.take(3)
>>> g.put_back(first, 3)
>>> g.counter
0
)");
  type.def(
      "get_state", [](const Generator& self) { return py::make_tuple(self.seed(), self.counter()); },
      R"((seed, counter), for set_state.

>>> g = tw.Generator(7)
>>> state = g.get_state()
>>> x = tw.rand(3, generator=g)
>>> g.set_state(state)
>>> tw.all(tw.rand(3, generator=g) == x)
tensor(True)
)");
  type.def(
      "set_state",
      [](Generator& self, const py::tuple& state) {
        if (state.size() != 2) throw ValueError("set_state: expected (seed, counter)");
        self.set(to_bits(state[0].cast<py::int_>()), to_bits(state[1].cast<py::int_>()));
      },
      py::arg("state"), R"(Goes to a state (seed, counter), as get_state gives it.

Raises ValueError for a tuple of another length.

>>> g = tw.Generator()
>>> g.set_state((7, 3))
>>> g
Generator(seed=7, counter=3)
)");
  type.def("__repr__", [](const Generator& self) {
    return "Generator(seed=" + std::to_string(self.seed()) + ", counter=" + std::to_string(self.counter()) +
           ")";
  });
  type.def("__reduce__", [](const Generator& self) {
    py::object rebuild = py::module_::import("thalweg._C").attr("_generator");
    return py::make_tuple(rebuild, py::make_tuple(self.seed(), self.counter()));
  });
  module.def(
      "_generator",
      [](std::uint64_t seed, std::uint64_t counter) {
        auto generator = std::make_shared<Generator>();
        generator->set(seed, counter);
        return generator;
      },
      py::arg("seed"), py::arg("counter"), "A generator in a given state, for pickles.");
  module.def("default_generator", default_generator,
             R"(The generator used where none is given; its first seed is 0. PyTorch's default_generator.

>>> x = tw.rand(2)
>>> tw.default_generator().counter >= 1
True
)");
}

}  // namespace thalweg::python
