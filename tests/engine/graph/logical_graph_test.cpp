// logical_graph_test.cpp: the live list, the retired list, names and the traversal order.
#include "graph/logical_graph.h"

#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "graph/graph_traversal_sequence.h"

namespace thalweg {
namespace {

struct Operators {
  explicit Operators(std::size_t count) {
    op.name = "op";
    for (std::size_t i = 0; i < count; ++i) {
      all.push_back(Operator::make(op, 0, 0));
      all.back()->id = i + 1;
      all.back()->claim = i + 1;
    }
  }
  ~Operators() {
    for (Operator* operation : all) operation->free();
  }
  Op op;
  std::vector<Operator*> all;
};

std::vector<std::uint64_t> live_ids(const LogicalGraph& graph) {
  std::vector<std::uint64_t> ids;
  for (const Operator* op = graph.first(); op != nullptr; op = op->live_next) ids.push_back(op->id);
  return ids;
}

TEST(LogicalGraph, KeepsOperatorsInTheOrderOfAdding) {
  Operators operators(4);
  LogicalGraph graph;
  EXPECT_TRUE(graph.empty());
  for (Operator* op : operators.all) graph.add(op);
  EXPECT_EQ(live_ids(graph), (std::vector<std::uint64_t>{1, 2, 3, 4}));
}

TEST(LogicalGraph, RemovesFromFrontMiddleAndBack) {
  Operators operators(5);
  LogicalGraph graph;
  for (Operator* op : operators.all) graph.add(op);
  graph.remove(operators.all[0]);
  graph.remove(operators.all[2]);
  graph.remove(operators.all[4]);
  EXPECT_EQ(live_ids(graph), (std::vector<std::uint64_t>{2, 4}));
  graph.remove(operators.all[1]);
  graph.remove(operators.all[3]);
  EXPECT_TRUE(graph.empty());
  graph.add(operators.all[0]);
  EXPECT_EQ(live_ids(graph), (std::vector<std::uint64_t>{1}));
}

TEST(LogicalGraph, ReapsEveryRetiredOperatorOnce) {
  Operators operators(2000);
  LogicalGraph graph;
  for (Operator* op : operators.all) graph.add(op);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = t; i < operators.all.size(); i += 4) graph.retire(operators.all[i]);
    });
  }
  std::size_t reaped = 0;
  const auto reap = [&] {
    for (Operator* op = graph.reap(); op != nullptr; op = op->next_retired) ++reaped;
  };
  while (reaped < operators.all.size() / 2) {
    reap();
    std::this_thread::yield();
  }
  for (std::thread& thread : threads) thread.join();
  reap();
  EXPECT_EQ(reaped, operators.all.size());
  EXPECT_TRUE(graph.empty());
  EXPECT_EQ(graph.reap(), nullptr);
}

TEST(LogicalGraph, CountsUnfinishedOperatorsBelowAnId) {
  Operators operators(5);
  LogicalGraph graph;
  for (Operator* op : operators.all) graph.add(op);
  EXPECT_EQ(graph.count_before(4), 3u);
  operators.all[1]->claim = 0;  // running is not finished
  EXPECT_EQ(graph.count_before(4), 3u);
  operators.all[1]->claim = Operator::kFinished;
  EXPECT_EQ(graph.count_before(4), 2u);
  EXPECT_EQ(graph.count_before(1), 0u);
}

TEST(LogicalGraph, NamesGraphAndOperands) {
  LogicalGraph graph;
  EXPECT_EQ(graph.name(), "graph");
  graph.set_name("step");
  EXPECT_EQ(graph.name(), "step");
  Operand* operand = Operand::make(nullptr, false);
  EXPECT_EQ(graph.name_of(*operand), "");
  graph.name_operand(*operand, "w");
  EXPECT_EQ(graph.name_of(*operand), "w");
  graph.name_operand(*operand, "weights");
  EXPECT_EQ(graph.name_of(*operand), "weights");
  operand->drop_handle();
}

TEST(GraphTraversalSequence, VisitsInTheOrderOfAppending) {
  Operators operators(3);
  GraphTraversalSequence order;
  EXPECT_TRUE(order.empty());
  for (Operator* op : operators.all) order.append(op);
  std::vector<std::uint64_t> ids;
  order.for_each([&](Operator* op) { ids.push_back(op->id); });
  EXPECT_EQ(ids, (std::vector<std::uint64_t>{1, 2, 3}));
  order.clear();
  EXPECT_TRUE(order.empty());
}

TEST(GraphTraversalSequence, TheVisitMayReuseTheOperator) {
  Operators operators(3);
  GraphTraversalSequence order;
  for (Operator* op : operators.all) order.append(op);
  int visits = 0;
  order.for_each([&](Operator* op) {
    op->next_ready = op;
    ++visits;
  });
  EXPECT_EQ(visits, 3);
}

TEST(Operator, KeepsFewOperandsInPlaceAndManyOnTheHeap) {
  Op op;
  for (std::size_t inputs : {0u, 1u, 3u, 4u, 40u, 2u, 300u}) {
    Operator* operation = Operator::make(op, inputs, 1);
    ASSERT_EQ(operation->inputs().size(), inputs);
    ASSERT_EQ(operation->outputs().size(), 1u);
    for (std::size_t i = 0; i < inputs; ++i) {
      operation->inputs()[i] = reinterpret_cast<Operand*>(8 * (i + 1));
    }
    operation->outputs()[0] = reinterpret_cast<Operand*>(8);
    for (std::size_t i = 0; i < inputs; ++i) {
      EXPECT_EQ(operation->inputs()[i], reinterpret_cast<Operand*>(8 * (i + 1)));
    }
    operation->free();
  }
}

}  // namespace
}  // namespace thalweg
