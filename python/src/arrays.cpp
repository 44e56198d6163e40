#include "arrays.hpp"

namespace lockstep::python {
namespace {

nb::dlpack::dtype dtype_of(Storage storage) {
  const auto bits = uint8_t(8 * size_of(storage));
  switch (storage) {
    case Storage::f32:
    case Storage::f64: return {uint8_t(nb::dlpack::dtype_code::Float), bits, 1};
    case Storage::i32:
    case Storage::i64: return {uint8_t(nb::dlpack::dtype_code::Int), bits, 1};
    default: return {uint8_t(nb::dlpack::dtype_code::UInt), bits, 1};
  }
}

}  // namespace

nb::object to_numpy(const Array& array) {
  auto* const kept = new Array(array.copy());
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<Array*>(p); });
  std::vector<size_t> shape(kept->shape().begin(), kept->shape().end());
  return nb::cast(nb::ndarray<nb::numpy>(kept->mutate_raw().data(), shape.size(), shape.data(), owner,
                                         nullptr, dtype_of(kept->storage())));
}

Array array_of(const nb::object& values, const std::string& where) {
  nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu> view;
  if (!nb::try_cast(values, view))
    throw InputError("an object that is not an array of numbers in C order", where, "a NumPy array");
  const nb::dlpack::dtype type = view.dtype();
  for (const Storage storage :
       {Storage::f32, Storage::f64, Storage::i32, Storage::u32, Storage::i64, Storage::u64, Storage::u8}) {
    if (dtype_of(storage) != type) continue;
    Sizes shape;
    for (size_t axis = 0; axis < view.ndim(); ++axis) shape.push_back(int64_t(view.shape(axis)));
    return Array::adopt(storage, shape, view.data(), keep(values));
  }
  throw InputError("elements of another type", where,
                   "float32, float64, int32, uint32, int64, uint64 or uint8");
}

}  // namespace lockstep::python
