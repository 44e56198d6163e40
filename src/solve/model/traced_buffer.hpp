// Buffers and numbers of a kernel whose parameters are counted while it is traced.
#pragma once

#include <initializer_list>
#include <string>

#include "lockstep/autodiff.hpp"

namespace lockstep::solve {

/// A buffer of the kernel being traced, of rank 1 or 2, indexed explicitly.
class TracedBuffer : public lockstep::detail::BufferRef {
 public:
  TracedBuffer(std::string name, Storage storage, int rank, ir::Access access)
      : BufferRef(uint32_t(lockstep::detail::builder().function().buffers.size()), rank), storage_(storage) {
    lockstep::detail::builder().function().buffers.push_back({std::move(name), storage, rank, access});
  }
  ir::Id load(std::initializer_list<ir::Id> at) const {
    ir::Instruction load{ir::Op::load};
    load.type = value_type(storage_);
    load.imm = buffer_;
    load.args[0] = offset(at);
    return lockstep::detail::builder().append(load);
  }
  /// The value as `type`.
  ir::Id load_as(Type type, std::initializer_list<ir::Id> at) const {
    return lockstep::detail::builder().convert(type, load(at));
  }
  Val<i32> load_index(const Val<i32>& at) const { return Val<i32>::from(load({at.id()})); }
  Val<i32> load_index(const Val<i32>& row, const Val<i32>& at) const {
    return Val<i32>::from(load({row.id(), at.id()}));
  }
  /// Stores after a conversion to the buffer's type.
  void store(std::initializer_list<ir::Id> at, ir::Id value) const {
    ir::Builder& b = lockstep::detail::builder();
    const ir::Id converted = b.convert(value_type(storage_), value);
    ir::Instruction store{ir::Op::store};
    store.imm = buffer_;
    store.args[0] = offset(at);
    store.args[1] = converted;
    b.append(store);
  }

 private:
  Storage storage_;
};

/// autodiff::Lowering for kernels written in the IR.
class Lowering {
 public:
  Lowering(const autodiff::Graph& graph, Type type, std::function<ir::Id(uint32_t)> leaf)
      : lower_(graph, type, [leaf = std::move(leaf)](uint32_t number) {
          return lockstep::detail::any_value(leaf(number));
        }) {}
  ir::Id operator()(const autodiff::Value& value) { return lockstep::detail::id_of(lower_(value)); }

 private:
  autodiff::Lowering lower_;
};

/// A number among the kernel's arguments.
inline ir::Id traced_scalar(std::string name, Type type) {
  ir::Builder& b = lockstep::detail::builder();
  b.function().scalars.push_back({std::move(name), type});
  return b.emit(ir::Op::param, type, {}, b.function().scalars.size() - 1);
}

}  // namespace lockstep::solve
