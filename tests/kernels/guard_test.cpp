// guard_test.cpp: kernels that hand tensors to OpenBLAS read and write nothing behind them: a page that may
// not be touched follows the last element.
#include <complex>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernels/op_runner.h"

namespace thalweg::testing {
namespace {

/// Memory for one tensor that ends where a forbidden page begins.
class GuardedTensor {
 public:
  GuardedTensor(DType dtype, const Shape& shape) : page_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) {
    meta_.dtype = dtype;
    meta_.shape = shape;
    meta_.strides = contiguous_strides(shape);
    const auto bytes = static_cast<std::size_t>(meta_.bytes());
    room_ = (bytes + page_ - 1) / page_ * page_;
    base_ = static_cast<char*>(
        mmap(nullptr, room_ + page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(base_ + room_, page_, PROT_NONE);
    data_ = base_ + room_ - bytes;
  }
  ~GuardedTensor() { munmap(base_, room_ + page_); }
  GuardedTensor(const GuardedTensor&) = delete;
  GuardedTensor& operator=(const GuardedTensor&) = delete;

  TensorMeta& meta() { return meta_; }
  TensorView view() const { return {data_, &meta_}; }

  /// Numbers of which most matrices are regular, with ones to spare on the diagonal of square ones.
  template <class T>
  void fill() {
    const std::int64_t columns = meta_.shape.back();
    T* data = reinterpret_cast<T*>(data_);
    for (std::int64_t i = 0; i < meta_.numel(); ++i) {
      const double number = static_cast<double>((i * i * 31 + i * 7) % 17) / 17.0;
      data[i] = T(static_cast<float>(number + (i / columns % columns == i % columns ? 40.0 : 0.0)));
    }
  }

 private:
  std::size_t page_;
  std::size_t room_ = 0;
  char* base_ = nullptr;
  char* data_ = nullptr;
  TensorMeta meta_;
};

/// Runs `name` with guarded inputs into guarded outputs.
void run_guarded(const std::string& name, const std::vector<GuardedTensor*>& inputs) {
  const Op& op = registries().ops.find(name);
  const Attributes attributes = positional(op, {});
  std::vector<const TensorMeta*> metas;
  std::vector<TensorView> in;
  for (GuardedTensor* input : inputs) {
    metas.push_back(&input->meta());
    in.push_back(input->view());
  }
  std::vector<InputRequest> requests(inputs.size());
  std::vector<TensorMeta> results(op.outputs);
  std::vector<TensorMeta*> result_metas;
  for (TensorMeta& meta : results) result_metas.push_back(&meta);
  InferContext context(op, metas, attributes, result_metas, requests);
  op.infer(context);
  std::vector<std::unique_ptr<GuardedTensor>> outputs;
  std::vector<TensorView> out;
  for (const TensorMeta& meta : results) {
    outputs.push_back(std::make_unique<GuardedTensor>(meta.dtype, meta.shape));
    out.push_back(outputs.back()->view());
  }
  (*registries().kernels.find(op, DeviceType::cpu))(KernelContext(op, attributes, in, out));
}

template <class T>
class Guard : public ::testing::Test {};
using Elements = ::testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(Guard, Elements);

TYPED_TEST(Guard, StridedVectorsInProducts) {
  for (std::int64_t rows : {9, 10, 11, 12}) {
    for (std::int64_t length : {24, 25, 26, 27}) {
      for (std::int64_t stride : {1, 2, 600}) {
        GuardedTensor matrix(dtype_of<TypeParam>(), {rows, length});
        GuardedTensor transposed(dtype_of<TypeParam>(), {length, rows});
        // The gap that would follow the last element is not there.
        GuardedTensor vector(dtype_of<TypeParam>(), {(length - 1) * stride + 1});
        for (GuardedTensor* each : {&matrix, &transposed, &vector}) each->template fill<TypeParam>();
        vector.meta().shape = {length};
        vector.meta().strides = {stride};
        transposed.meta().shape = {rows, length};
        transposed.meta().strides = {1, rows};
        run_guarded("matmul", {&matrix, &vector});
        run_guarded("matmul", {&transposed, &vector});
      }
    }
  }
}

TYPED_TEST(Guard, Decompositions) {
  for (std::int64_t rows : {1, 2, 3, 5, 17, 40, 70}) {
    for (std::int64_t columns : {1, 3, 8, 40, 70, 150}) {
      GuardedTensor x(dtype_of<TypeParam>(), {2, rows, columns});
      x.fill<TypeParam>();
      for (const char* name : {"qr", "svd", "svdvals"}) run_guarded(name, {&x});
    }
    GuardedTensor square(dtype_of<TypeParam>(), {2, rows, rows});
    GuardedTensor right(dtype_of<TypeParam>(), {2, rows, 3});
    square.fill<TypeParam>();
    right.fill<TypeParam>();
    for (const char* name : {"inv", "det", "slogdet", "cholesky", "eigh", "eigvalsh", "eig", "eigvals"}) {
      run_guarded(name, {&square});
    }
    run_guarded("solve", {&square, &right});
    GuardedTensor column(dtype_of<TypeParam>(), {rows});
    column.fill<TypeParam>();
    run_guarded("solve", {&square, &column});
  }
}

}  // namespace
}  // namespace thalweg::testing
