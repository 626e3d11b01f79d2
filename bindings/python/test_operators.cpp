// test_operators.cpp: kernels that misbehave in controlled ways, for tests of failures, waits and interrupts.
#include "test_operators.h"

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <new>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include <thalweg/gradient.h>

namespace thalweg::python {

namespace {

using std::chrono::seconds;

/// Gates by number; leaked, because kernels may still wait at exit.
struct Gates {
  std::mutex lock;
  std::condition_variable opened;
  std::int64_t count = 0;
  std::set<std::int64_t> open;
};
Gates& gates() {
  static Gates* instance = new Gates;
  return *instance;
}

void copy_input(const KernelContext& ctx) {
  const std::int64_t bytes = ctx.output().meta->bytes();
  if (bytes > 0) std::memcpy(ctx.output().data, ctx.input(0).data, std::size_t(bytes));
}

void fail(const KernelContext& ctx) {
  const std::string kind = ctx.attributes().get<std::string>(0);
  const std::string message = ctx.attributes().get<std::string>(1);
  if (kind == "value") throw ValueError(message);
  if (kind == "index") throw IndexError(message);
  if (kind == "kernel") throw KernelError(message);
  if (kind == "invalid_argument") throw std::invalid_argument(message);
  if (kind == "bad_alloc") throw std::bad_alloc();
  if (kind == "unknown") throw 7;
  throw std::runtime_error(message);
}

void pass_gate(const KernelContext& ctx) {
  Gates& all = gates();
  const std::int64_t gate = ctx.attributes().get<std::int64_t>(0);
  std::unique_lock guard(all.lock);
  // The limit keeps a broken test from hanging its process at exit.
  if (!all.opened.wait_for(guard, seconds(60), [&] { return all.open.contains(gate); })) {
    throw KernelError("gate " + std::to_string(gate) + " was not opened within a minute");
  }
  guard.unlock();
  copy_input(ctx);
}

void sleep(const KernelContext& ctx) {
  std::this_thread::sleep_for(std::chrono::milliseconds(ctx.attributes().get<std::int64_t>(0)));
  copy_input(ctx);
}

/// The state of SplitMix64 (Steele, Lea and Flood, Fast splittable pseudorandom number generators, 2014),
/// mixed.
std::uint64_t mixed(std::uint64_t state) {
  state += 0x9e3779b97f4a7c15;
  state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9;
  state = (state ^ (state >> 27)) * 0x94d049bb133111eb;
  return state ^ (state >> 31);
}

/// The identity, after a time that the seed chooses.
void jitter(const KernelContext& ctx) {
  const auto seed = static_cast<std::uint64_t>(ctx.attributes().get<std::int64_t>(0));
  const auto most = static_cast<std::uint64_t>(ctx.attributes().get<std::int64_t>(1));
  if (most > 0) std::this_thread::sleep_for(std::chrono::microseconds(mixed(seed) % (most + 1)));
  copy_input(ctx);
}

/// The gradient takes another time.
void jitter_gradient(GradientContext& ctx) {
  Attributes attributes = ctx.attributes();
  attributes[0] = static_cast<std::int64_t>(mixed(std::uint64_t(attributes.get<std::int64_t>(0))) >> 1);
  ctx.set(0, ctx.engine().apply(ctx.op(), {&ctx.grad()}, std::move(attributes), ctx.site()));
}

Op test_op(std::string name, std::vector<AttrSpec> attributes) {
  Op op;
  op.name = std::move(name);
  op.inputs = {"x"};
  op.attributes = std::move(attributes);
  op.infer = [](InferContext& ctx) {
    ctx.require_contiguous(0);
    ctx.set_contiguous(0, ctx.input(0).shape, ctx.input(0).dtype);
  };
  op.doc = "For tests.";
  op.ns_per_element = -1;
  return op;
}

}  // namespace

void register_test_operators(Engine& engine) {
  engine.register_operator(
      test_op("test_fail", {{"kind", AttrKind::string, std::string("runtime")},
                            {"message", AttrKind::string, std::string("asked to fail")}}),
      fail);
  engine.register_operator(test_op("test_gate", {{"gate", AttrKind::integer, {}, true}}), pass_gate);
  engine.register_operator(test_op("test_sleep", {{"milliseconds", AttrKind::integer, std::int64_t{10}}}),
                           sleep);
  Op op = test_op("test_jitter", {{"seed", AttrKind::integer, {}, true},
                                  {"most_microseconds", AttrKind::integer, std::int64_t{200}}});
  op.gradient = jitter_gradient;
  engine.register_operator(std::move(op), jitter);
}

void add_testing(py::module_& module) {
  py::module_ testing = module.def_submodule("testing", "What tests use to hold operators back.");
  testing.def(
      "new_gate",
      [] {
        std::lock_guard guard(gates().lock);
        return ++gates().count;
      },
      "A closed gate for test_gate.");
  testing.def(
      "open_gate",
      [](std::int64_t gate) {
        std::lock_guard guard(gates().lock);
        gates().open.insert(gate);
        gates().opened.notify_all();
      },
      py::arg("gate"), "Lets the operators at the gate go on, now and later.");
}

}  // namespace thalweg::python
