// DLPack both ways, by its stable C structures (https://dmlc.github.io/dlpack).
#include <cstring>

#include "bind.hpp"

namespace lockstep::python {
namespace {

struct DlDevice {
  int32_t type, id;
};
struct DlType {
  uint8_t code, bits;
  uint16_t lanes;
};
struct DlTensor {
  void* data;
  DlDevice device;
  int32_t rank;
  DlType type;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};
struct DlManaged {
  DlTensor tensor;
  void* context;
  void (*deleter)(DlManaged*);
};
struct DlVersioned {
  uint32_t major, minor;
  void* context;
  void (*deleter)(DlVersioned*);
  uint64_t flags;
  DlTensor tensor;
};
constexpr uint64_t kReadOnly = 1;
constexpr int kInt = 0, kUnsigned = 1, kFloat = 2, kBfloat = 4, kBool = 6;

DlType dl_type(Storage s) {
  const auto bits = uint8_t(8 * size_of(s));
  switch (s) {
    case Storage::f32:
    case Storage::f64:
    case Storage::f16: return {kFloat, bits, 1};
    case Storage::bf16: return {kBfloat, bits, 1};
    case Storage::i32:
    case Storage::i64: return {kInt, bits, 1};
    default: return {kUnsigned, bits, 1};
  }
}
std::string name_of(DlType t) {
  if (t.lanes != 1) return "vectors";
  const std::string bits = std::to_string(t.bits);
  switch (t.code) {
    case kInt: return "i" + bits;
    case kUnsigned: return "u" + bits;
    case kFloat: return "f" + bits;
    case kBfloat: return "bf" + bits;
    case kBool: return "bool";
    default: return "complex or other";
  }
}

/// Content of an exported capsule.
struct Exported {
  DlManaged managed;
  Buffer buffer;
  std::vector<int64_t> shape, strides;
};

nb::capsule to_capsule(const Buffer& buffer, int device_type, int device_id) {
  auto* const own = new Exported{{}, buffer, sizes_of(buffer.shape()), {}};
  own->strides.assign(buffer.strides().begin(), buffer.strides().begin() + buffer.shape().rank());
  own->managed.tensor = {reinterpret_cast<void*>(uintptr_t(buffer.native())),
                         {device_type, device_id},
                         buffer.shape().rank(),
                         dl_type(buffer.storage()),
                         own->shape.data(),
                         own->strides.data(),
                         0};
  own->managed.context = own;
  own->managed.deleter = [](DlManaged* m) { delete static_cast<Exported*>(m->context); };
  PyObject* const capsule = PyCapsule_New(&own->managed, "dltensor", [](PyObject* c) {
    // A consumer renames the capsule and calls the deleter itself.
    if (!PyCapsule_IsValid(c, "dltensor")) return;
    auto* m = static_cast<DlManaged*>(PyCapsule_GetPointer(c, "dltensor"));
    m->deleter(m);
  });
  return nb::steal<nb::capsule>(capsule);
}

template <class Managed>
nb::object owner_of(Managed* managed) {
  return nb::capsule(managed, [](void* p) noexcept {
    auto* m = static_cast<Managed*>(p);
    if (m->deleter) m->deleter(m);
  });
}

/// (address, dtype, shape, strides in elements or None, device type, device number, read only, owner)
nb::tuple from_capsule(nb::object capsule) {
  const DlTensor* tensor = nullptr;
  nb::object owner;
  bool read_only = false;
  PyObject* const c = capsule.ptr();
  if (PyCapsule_IsValid(c, "dltensor_versioned")) {
    auto* m = static_cast<DlVersioned*>(PyCapsule_GetPointer(c, "dltensor_versioned"));
    tensor = &m->tensor;
    read_only = (m->flags & kReadOnly) != 0;
    PyCapsule_SetName(c, "used_dltensor_versioned");
    owner = owner_of(m);
  } else if (PyCapsule_IsValid(c, "dltensor")) {
    auto* m = static_cast<DlManaged*>(PyCapsule_GetPointer(c, "dltensor"));
    tensor = &m->tensor;
    PyCapsule_SetName(c, "used_dltensor");
    owner = owner_of(m);
  } else {
    throw InputError("an object that is not an unused DLPack capsule", "lockstep.asarray",
                     "the result of __dlpack__()");
  }
  const std::vector<int64_t> shape(tensor->shape, tensor->shape + tensor->rank);
  nb::object strides = nb::none();
  if (tensor->strides)
    strides = nb::cast(std::vector<int64_t>(tensor->strides, tensor->strides + tensor->rank));
  const auto address = uint64_t(reinterpret_cast<uintptr_t>(tensor->data)) + tensor->byte_offset;
  return nb::make_tuple(address, name_of(tensor->type), shape, strides, tensor->device.type,
                        tensor->device.id, read_only, owner);
}

}  // namespace

void bind_dlpack(nb::module_& module) {
  module.def("to_dlpack", &to_capsule);
  module.def("from_dlpack", &from_capsule);
}

}  // namespace lockstep::python
