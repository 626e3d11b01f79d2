// engine_class.cpp: the Python class Engine and the functions about waiting.
#include <optional>
#include <sstream>
#include <string>

#include "callback_lane.h"
#include "engines.h"
#include "errors.h"
#include "parallelism.h"
#include "sites.h"
#include "values.h"

namespace thalweg::python {

namespace {

EngineMode parse_mode(const std::string& text) {
  if (text == "threaded") return EngineMode::threaded;
  if (text == "caller" || text == "caller_driven") return EngineMode::caller_driven;
  if (text == "sync" || text == "synchronous") return EngineMode::synchronous;
  throw ValueError("Engine: unknown mode '" + text + "'; the modes are threaded, caller and sync");
}

const char* mode_name(EngineMode mode) {
  switch (mode) {
    case EngineMode::threaded: return "threaded";
    case EngineMode::caller_driven: return "caller";
    case EngineMode::synchronous: break;
  }
  return "sync";
}

template <class T>
T argument(const std::string& what, py::handle value, const char* expected) {
  // True is 1 to Python; as a count it is a mistake.
  const bool fits = std::is_same_v<T, bool> || !PyBool_Check(value.ptr());
  try {
    if (fits) return value.cast<T>();
  } catch (const py::cast_error&) {
  }
  throw DTypeError(what + " must be " + expected + ", not " + std::string(py::str(py::repr(value))));
}

template <class T>
T option(const std::string& name, py::handle value, const char* expected) {
  return argument<T>("Engine: option '" + name + "'", value, expected);
}

/// The environment's options, overlaid with keyword arguments named as in EngineOptions.
EngineOptions options_from(const py::kwargs& keywords, bool* test_operators) {
  EngineOptions options = EngineOptions::from_environment();
  for (const auto& [key, value] : keywords) {
    const std::string name = py::str(key);
    if (name == "mode")
      options.mode = parse_mode(option<std::string>(name, value, "a str"));
    else if (name == "num_threads")
      options.num_threads = option<int>(name, value, "an int");
    else if (name == "cpu_devices")
      options.cpu_devices = option<int>(name, value, "an int");
    else if (name == "max_operators_in_flight")
      options.max_operators_in_flight = option<std::int64_t>(name, value, "an int");
    else if (name == "max_bytes_in_flight")
      options.max_bytes_in_flight = option<std::int64_t>(name, value, "an int");
    else if (name == "memory_limit")
      options.memory_limit = option<std::int64_t>(name, value, "an int");
    else if (name == "cache_limit")
      options.cache_limit = option<std::int64_t>(name, value, "an int");
    else if (name == "run_inline")
      options.run_inline = option<bool>(name, value, "a bool");
    else if (name == "perDevicePerProcess")
      options.perDevicePerProcess = option<bool>(name, value, "a bool");
    else if (name == "name")
      options.name = option<std::string>(name, value, "a str");
    else if (name == "test_operators")
      *test_operators = option<bool>(name, value, "a bool");
    else
      throw AttributeError(
          "Engine: unknown option '" + name +
          "'; the options are mode, num_threads, cpu_devices, max_operators_in_flight, "
          "max_bytes_in_flight, memory_limit, cache_limit, run_inline, perDevicePerProcess and name");
  }
  return options;
}

py::dict memory_stats(EngineHandle& self, py::handle device) {
  const Device where = to_device(device.ptr());
  self->check_device(where);
  const MemoryStats stats = self->memory_stats(where);
  py::dict result;
  result["live_bytes"] = stats.live_bytes;
  result["peak_bytes"] = stats.peak_bytes;
  result["cached_bytes"] = stats.cached_bytes;
  result["limit_bytes"] = stats.limit_bytes;
  return result;
}

py::dict stats(EngineHandle& self) {
  const EngineStats stats = self->stats();
  py::dict result;
  result["issued"] = stats.issued;
  result["executed"] = stats.executed;
  result["failed"] = stats.failed;
  result["run_inline"] = stats.run_inline;
  result["donated"] = stats.donated;
  result["in_flight"] = stats.in_flight;
  return result;
}

using Class = py::class_<EngineHandle, std::shared_ptr<EngineHandle>>;

void add_life(Class& type) {
  type.def(py::init([](const py::kwargs& options) {
             bool test_operators = false;
             EngineOptions parsed = options_from(options, &test_operators);
             return std::make_shared<EngineHandle>(std::move(parsed), test_operators);
           }),
           "Options: as the class says.");
  type.def("__enter__", [](std::shared_ptr<EngineHandle> self) {
    enter_engine(self);
    return self;
  });
  type.def("__exit__", [](const EngineHandle& self, const py::args&) { leave_engine(self); });
  type.def(
      "close",
      [](EngineHandle& self) {
        py::list unread;
        for (const std::string& text : self->shutdown()) unread.append(text);
        return unread;
      },
      R"(Stops accepting operators, finishes what was issued, stops the threads. Returns texts of unread failures, and
raises none.

>>> tw.Engine().close()
[]
)");
  type.def_property_readonly(
      "closed", [](EngineHandle& self) { return self->is_shut_down(); },
      R"(True after close.

>>> engine = tw.Engine()
>>> unread = engine.close()
>>> engine.closed
True
)");
  type.def_property_readonly(
      "mode", [](EngineHandle& self) { return mode_name(self->mode()); },
      R"(Who drives it: "threaded", "caller" or "sync".

>>> tw.Engine(mode="sync").mode
'sync'
)");
  type.def_property_readonly(
      "name", [](EngineHandle& self) { return self->options().name; },
      R"(The name that it was made with.

>>> tw.Engine(name="mine").name
'mine'
)");
  type.def("__repr__", [](EngineHandle& self) {
    return "<thalweg.Engine '" + self->options().name + "' (" + mode_name(self->mode()) + ")>";
  });
}

void add_control(Class& type) {
  type.def(
      "flush", [](EngineHandle& self) { self->flush(); }, R"(Starts what was issued; does not wait.

>>> x = tw.arange(3) + 1
>>> tw.engine().flush()  # x is computed while this thread goes on
)");
  type.def(
      "synchronize", [](EngineHandle& self) { self->synchronize(); },
      R"(Waits for everything issued, then raises the oldest failure nobody has seen.

>>> x = tw.arange(3) + 1
>>> tw.engine().synchronize()
>>> x.is_ready()
True
)");
  type.def(
      "drain", [](EngineHandle& self) { self->drain(); }, R"(Waits for everything issued; raises no failure.

>>> x = tw.arange(3) + 1
>>> tw.engine().drain()
>>> x.is_ready()
True
)");
  type.def(
      "devices",
      [](EngineHandle& self) {
        py::list devices;
        for (Device device : self->devices()) devices.append(device_object(device));
        return py::tuple(devices);
      },
      R"(The devices of this engine.

>>> tw.Engine(cpu_devices=2).devices()
(Device('cpu:0'), Device('cpu:1'))
)");
  type.def(
      "set_num_threads",
      [](EngineHandle& self, py::handle value) {
        const int count = argument<int>("set_num_threads: count", value, "an int");
        self->set_num_threads(count);
        if (self->mode() != EngineMode::synchronous) allow_parallelism(count);
      },
      py::arg("count"),
      R"(Drains, then goes on with `count` threads a device (0: as many as the process may use).

Raises ValueError for a count below 0 or above 1024.

>>> engine = tw.Engine()
>>> engine.set_num_threads(2)
>>> engine.get_num_threads()
2
)");
  type.def(
      "get_num_threads", [](EngineHandle& self) { return self->num_threads(); },
      R"(Threads that may run one device's operators at the same time.

>>> tw.Engine(num_threads=2).get_num_threads()
2
)");
  type.def(
      "set_name", [](EngineHandle& self, std::string name) { self->set_name(std::move(name)); },
      py::arg("name"), R"(Names the graph in dumps.

>>> import json
>>> engine = tw.Engine()
>>> engine.set_name("step 1")
>>> json.loads(engine.dump_graph())["graph"]
'step 1'
)");
  type.def(
      "set_memory_limit",
      [](EngineHandle& self, py::handle bytes) {
        self->set_memory_limit(argument<std::int64_t>("set_memory_limit: bytes", bytes, "an int of 64 bits"));
      },
      py::arg("bytes"), R"(Bytes of tensors per device; 0: no limit. Raises ValueError for a negative number.

>>> engine = tw.Engine()
>>> engine.set_memory_limit(2**30)
>>> engine.memory_stats()["limit_bytes"] == 2**30
True
)");
  type.def(
      "set_run_ahead",
      [](EngineHandle& self, py::handle operators, py::handle bytes) {
        self->set_run_ahead(
            argument<std::int64_t>("set_run_ahead: operators", operators, "an int of 64 bits"),
            argument<std::int64_t>("set_run_ahead: bytes", bytes, "an int of 64 bits"));
      },
      py::arg("operators"), py::arg("bytes"),
      R"(Limits what is issued and not finished: beyond it the issuing thread helps until there is room.

Raises ValueError for a limit below 1 and for more than 1,000,000 operators.

>>> tw.Engine().set_run_ahead(operators=100, bytes=2**20)
)");
}

void add_inspection(Class& type) {
  type.def("memory_stats", memory_stats, py::arg("device") = py::none(),
           R"(live_bytes, peak_bytes, cached_bytes and limit_bytes of a device.

Raises DeviceError for a device that is not there.

>>> engine = tw.Engine()
>>> with engine:
...     x = tw.zeros(1024).wait()
>>> engine.memory_stats()["live_bytes"]
4096
)");
  type.def(
      "reset_peak_memory",
      [](EngineHandle& self, py::handle device) { self->reset_peak_memory(to_device(device.ptr())); },
      py::arg("device") = py::none(),
      R"(Starts the peak anew from the live bytes. Raises DeviceError for a device that is not there.

>>> engine = tw.Engine()
>>> with engine:
...     total = tw.zeros(1024).sum().item()
>>> engine.reset_peak_memory()
>>> engine.memory_stats()["peak_bytes"] < 4096
True
)");
  type.def(
      "empty_cache", [](EngineHandle& self) { self->empty_cache(); },
      R"(Gives freed blocks back to the system.

>>> engine = tw.Engine()
>>> with engine:
...     total = tw.zeros(1024).sum().item()
>>> engine.empty_cache()
>>> engine.memory_stats()["cached_bytes"]
0
)");
  type.def("stats", stats, R"(Operator counters: issued, executed, failed, run_inline, donated, in_flight.

>>> engine = tw.Engine()
>>> with engine:
...     x = (tw.ones(3) + 1).wait()
>>> engine.stats()["issued"], engine.stats()["failed"]
(2, 0)
)");
  type.def(
      "dump_graph",
      [](EngineHandle& self) {
        std::ostringstream out;
        self->dump_graph(out);
        return out.str();
      },
      R"(The live graph as JSON text (tools/graph.schema.json).

>>> import json
>>> json.loads(tw.Engine().dump_graph())["operators"]
[]
)");
  type.def(
      "start_recording", [](EngineHandle& self) { self->start_recording(); },
      R"(Keeps every operator from now on, for stop_recording. Raises EngineError where a recording is on.

>>> engine = tw.Engine()
>>> engine.start_recording()
>>> engine.start_recording()
Traceback (most recent call last):
    ...
thalweg.EngineError: start_recording: a recording is on already; stop it before starting another
)");
  type.def(
      "stop_recording",
      [](EngineHandle& self) {
        std::ostringstream out;
        self->stop_recording(out);
        return out.str();
      },
      R"(What ran since start_recording, as JSON text. Raises EngineError where no recording is on.

>>> import json
>>> engine = tw.Engine()
>>> engine.start_recording()
>>> with engine:
...     x = (tw.ones(3) + 1).wait()
>>> [each["op"] for each in json.loads(engine.stop_recording())["operators"]]
['full', 'add']
)");
}

std::string policy_name(SyncPolicy policy) {
  switch (policy) {
    case SyncPolicy::allow: return "allow";
    case SyncPolicy::warn: return "warn";
    case SyncPolicy::error: break;
  }
  return "error";
}

SyncPolicy parse_policy(const std::string& text) {
  for (const SyncPolicy policy : {SyncPolicy::allow, SyncPolicy::warn, SyncPolicy::error}) {
    if (policy_name(policy) == text) return policy;
  }
  throw ValueError("on_sync: expected 'allow', 'warn' or 'error', got '" + text + "'");
}

}  // namespace

void add_engine_class(py::module_& module) {
  Class type(
      module, "Engine",
      R"(One independent engine. `with engine:` makes it the one that creation functions use; operators use the engine
of their operands. The block is that of its thread or asyncio task: others keep their own engine. It lives until
close() or the end of the process, since tensors need it.

Options: mode ("threaded", "caller" or "sync"), num_threads, cpu_devices, max_operators_in_flight, max_bytes_in_flight,
memory_limit, cache_limit, run_inline, name; without one the environment's value counts. Raises ArgumentError for
another option and ValueError or DTypeError for a value that it does not take.

>>> engine = tw.Engine(cpu_devices=2, name="mine")
>>> with engine:
...     x = tw.ones(3, device="cpu:1")
>>> (x + 1).device, engine.close()
(Device('cpu:1'), [])
)");
  add_life(type);
  add_control(type);
  add_inspection(type);
  module.def("current_engine", current_engine_handle,
             "The engine that creation functions use in this thread or asyncio task.");
  module.def("sync_count", sync_count, "Blocking reads so far that had to wait.");
  module.def(
      "get_sync_policy", [] { return policy_name(sync_policy()); },
      "What a blocking read does that has to wait.");
  module.def(
      "set_sync_policy", [](const std::string& policy) { set_sync_policy(parse_policy(policy)); },
      py::arg("policy"), py::pos_only(), "Sets it: 'allow', 'warn' or 'error'.");
  module.def("_set_package_directory", set_package_directory, py::arg("directory"), py::pos_only(),
             "Frames of files under it are not places of the user's program.");
  module.def(
      "_at_exit",
      [] {
        shut_down_all_engines();
        stop_callback_lane();
      },
      "Stops all engines and prints unread failures.");
  module.def(
      "_after_fork_in_child",
      [] {
        reset_callback_lane_after_fork();
        reset_sites_after_fork();
        remember_main_thread();
      },
      "Forgets threads that a forked child does not have, and knows its own as the main one.");
  module.attr("_entered_engines") = entered_engines();
  module.def("_engine_elsewhere", engine_elsewhere, py::arg("object"), py::pos_only(),
             "The engine of a tensor that is not of the current engine, else None.");
  module.def("_before_fork", settle_before_fork,
             "Waits for what is in flight with the interpreter lock released, which os.fork itself keeps.");
  module.def(
      "current_site", [] { return describe_site(current_site()); },
      "The caller's \"file:line\", as errors name it.");
}

}  // namespace thalweg::python
