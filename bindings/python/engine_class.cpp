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
T option(const std::string& name, py::handle value, const char* expected) {
  try {
    return value.cast<T>();
  } catch (const py::cast_error&) {
    throw DTypeError("Engine: option '" + name + "' must be " + expected + ", not " +
                     std::string(py::str(py::repr(value))));
  }
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
      throw AttributeError("Engine: unknown option '" + name + "'");
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
           "Options: mode (threaded, caller, sync), num_threads, cpu_devices, max_operators_in_flight, "
           "max_bytes_in_flight, memory_limit, cache_limit, run_inline, name. Others keep the environment's "
           "value.");
  type.def("__enter__", [](std::shared_ptr<EngineHandle> self) {
    push_current_engine(self);
    return self;
  });
  type.def("__exit__", [](EngineHandle&, const py::args&) { pop_current_engine(); });
  type.def(
      "close",
      [](EngineHandle& self) {
        py::list unread;
        for (const std::string& text : self->shutdown()) unread.append(text);
        return unread;
      },
      "Stops accepting operators, finishes what was issued, stops the threads. Returns texts of unread "
      "failures.");
  type.def_property_readonly("closed", [](EngineHandle& self) { return self->is_shut_down(); });
  type.def_property_readonly("mode", [](EngineHandle& self) { return mode_name(self->mode()); });
  type.def_property_readonly("name", [](EngineHandle& self) { return self->options().name; });
  type.def("__repr__", [](EngineHandle& self) {
    return "<thalweg.Engine '" + self->options().name + "' (" + mode_name(self->mode()) + ")>";
  });
}

void add_control(Class& type) {
  type.def(
      "flush", [](EngineHandle& self) { self->flush(); }, "Starts what was issued; does not wait.");
  type.def(
      "synchronize", [](EngineHandle& self) { self->synchronize(); },
      "Waits for everything issued, then raises the oldest failure nobody has seen.");
  type.def(
      "drain", [](EngineHandle& self) { self->drain(); }, "Waits for everything issued; raises no failure.");
  type.def(
      "devices",
      [](EngineHandle& self) {
        py::list devices;
        for (Device device : self->devices()) devices.append(device_object(device));
        return py::tuple(devices);
      },
      "The devices of this engine.");
  type.def(
      "set_num_threads",
      [](EngineHandle& self, int count) {
        self->set_num_threads(count);
        allow_parallelism(count);
      },
      py::arg("count"),
      "Drains, then goes on with `count` threads a device (0: as many as the process may use).");
  type.def(
      "get_num_threads", [](EngineHandle& self) { return self->num_threads(); },
      "Threads that may run one device's operators at the same time.");
  type.def(
      "set_name", [](EngineHandle& self, std::string name) { self->set_name(std::move(name)); },
      py::arg("name"), "Names the graph in dumps.");
  type.def(
      "set_memory_limit", [](EngineHandle& self, std::int64_t bytes) { self->set_memory_limit(bytes); },
      py::arg("bytes"), "Bytes of tensors per device; 0: no limit.");
  type.def(
      "set_run_ahead",
      [](EngineHandle& self, std::int64_t operators, std::int64_t bytes) {
        self->set_run_ahead(operators, bytes);
      },
      py::arg("operators"), py::arg("bytes"), "Limits what is issued and not finished.");
}

void add_inspection(Class& type) {
  type.def("memory_stats", memory_stats, py::arg("device") = py::none(),
           "live_bytes, peak_bytes, cached_bytes and limit_bytes of a device.");
  type.def(
      "reset_peak_memory",
      [](EngineHandle& self, py::handle device) { self->reset_peak_memory(to_device(device.ptr())); },
      py::arg("device") = py::none(), "Starts the peak anew from the live bytes.");
  type.def(
      "empty_cache", [](EngineHandle& self) { self->empty_cache(); },
      "Gives freed blocks back to the system.");
  type.def("stats", stats, "Operator counters: issued, executed, failed, run_inline, donated, in_flight.");
  type.def(
      "dump_graph",
      [](EngineHandle& self) {
        std::ostringstream out;
        self->dump_graph(out);
        return out.str();
      },
      "The live graph as JSON text.");
  type.def(
      "start_recording", [](EngineHandle& self) { self->start_recording(); },
      "Keeps every operator from now on.");
  type.def(
      "stop_recording",
      [](EngineHandle& self) {
        std::ostringstream out;
        self->stop_recording(out);
        return out.str();
      },
      "What ran since start_recording, as JSON text.");
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
      "One independent engine. `with engine:` makes it the one that creation functions use; operators use "
      "the "
      "engine of their operands. It lives until close() or the end of the process, since tensors need it.");
  add_life(type);
  add_control(type);
  add_inspection(type);
  module.def("current_engine", current_engine_handle,
             "The engine that creation functions of this thread use.");
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
      },
      "Forgets threads that a forked child does not have.");
  module.def(
      "current_site", [] { return describe_site(current_site()); },
      "The caller's \"file:line\", as errors name it.");
}

}  // namespace thalweg::python
