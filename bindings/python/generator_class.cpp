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
      "A stream of random numbers: a seed and a counter. What an operation draws depends on both when it is "
      "issued, "
      "never on when it runs.");
  type.def(py::init([](const py::int_& seed) { return std::make_shared<Generator>(to_bits(seed)); }),
           py::arg("seed") = 0);
  type.def_property_readonly("seed", &Generator::seed, "The seed.");
  type.def_property_readonly("counter", &Generator::counter, "Numbers drawn so far.");
  type.def(
      "manual_seed",
      [](std::shared_ptr<Generator> self, const py::int_& seed) {
        self->set(to_bits(seed), 0);
        return self;
      },
      py::arg("seed"), "Begins the stream of `seed`. Returns the generator.");
  type.def("take", &Generator::take, py::arg("draws"), "Takes `draws` numbers; the first one's counter.");
  type.def("put_back", &Generator::put_back, py::arg("first"), py::arg("draws"),
           "Gives back what take gave, unless others have taken since: for a call that failed.");
  type.def(
      "get_state", [](const Generator& self) { return py::make_tuple(self.seed(), self.counter()); },
      "(seed, counter), for set_state.");
  type.def(
      "set_state",
      [](Generator& self, const py::tuple& state) {
        if (state.size() != 2) throw ValueError("set_state: expected (seed, counter)");
        self.set(to_bits(state[0].cast<py::int_>()), to_bits(state[1].cast<py::int_>()));
      },
      py::arg("state"), "Goes back to a state of get_state.");
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
             "The generator used where none is given; its first seed is 0.");
}

}  // namespace thalweg::python
