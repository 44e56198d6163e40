#include "solve/evaluate/batch_kernels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "core/hash.hpp"
#include "solve/model/traced_buffer.hpp"

namespace lockstep::solve {

using ir::Id;

Kernel cached_kernel(const std::string& key, const std::function<Kernel()>& make) {
  // Threads trace different kernels at the same time.
  struct Entry {
    std::once_flag traced;
    Kernel kernel;
  };
  static std::mutex guard;
  static std::unordered_map<std::string, std::shared_ptr<Entry>> kernels;
  std::shared_ptr<Entry> entry;
  {
    const std::scoped_lock lock(guard);
    auto& slot = kernels[key];
    if (!slot) slot = std::make_shared<Entry>();
    entry = slot;
  }
  std::call_once(entry->traced, [&] { entry->kernel = make(); });
  return entry->kernel;
}

std::string form_name(const Form& f) {
  const Storage compute = storage_of(f.compute);
  if (f.state == compute && f.real == compute && f.cost == compute) return std::string(name(f.compute));
  return fmt::format("{}_{}_{}_{}", name(f.compute), name(f.state), name(f.real), name(f.cost));
}

namespace {

std::string outputs_name(unsigned outputs) {
  static constexpr const char* kNames[] = {"cost", "gradient", "residuals", "jacobian", "diagonal"};
  std::string text;
  for (unsigned k = 0; k < std::size(kNames); ++k)
    if (outputs & (1u << k)) text += fmt::format("{}{}", text.empty() ? "" : "_", kNames[k]);
  return text;
}

Id own_index() { return lockstep::detail::builder().emit(ir::Op::coord, Type::i32, {}, 0); }

void store_rows(const TracedBuffer& to, Lowering& lower, const std::vector<Value>& values, Id at) {
  ir::Builder& b = lockstep::detail::builder();
  for (size_t k = 0; k < values.size(); ++k) to.store({b.i32(int(k)), at}, lower(values[k]));
}

/// An instance's numbers in a kernel: its blocks' components, its data and the arguments.
class InstanceNumbers {
 public:
  InstanceNumbers(const Program& program, const Form& form)
      : program_(program),
        form_(form),
        state_("state", form.state, 1, ir::Access::read),
        blocks_("blocks", Storage::i32, 2, ir::Access::read),
        first_(program.widths().size(), ir::kNone) {
    if (program.data_columns() > 0) data_.emplace("data", form.state, 2, ir::Access::read);
  }
  /// Call after all buffers were declared.
  void declare_uniforms() {
    for (int k = 0; k < program_.uniforms(); ++k)
      uniforms_.push_back(traced_scalar(fmt::format("constant{}", k), form_.compute));
  }
  Id operator()(const Program::Leaf& leaf, Id instance) {
    ir::Builder& b = lockstep::detail::builder();
    switch (leaf.kind) {
      case Program::Leaf::Kind::component: {
        Id& at = first_[size_t(leaf.slot)];
        if (at == ir::kNone) at = blocks_.load({b.i32(leaf.slot), instance});
        return state_.load_as(form_.compute, {b.op(ir::Op::iadd, {at, b.i32(leaf.index)})});
      }
      case Program::Leaf::Kind::datum: return data_->load_as(form_.compute, {b.i32(leaf.index), instance});
      case Program::Leaf::Kind::uniform: return uniforms_[size_t(leaf.index)];
      case Program::Leaf::Kind::direction: break;  // the kernel's own affair
    }
    throw InternalError("a direction", "solve instance kernel", "a number of the instance");
  }

 private:
  const Program& program_;
  const Form& form_;
  TracedBuffer state_, blocks_;
  std::optional<TracedBuffer> data_;
  std::vector<Id> first_, uniforms_;
};

}  // namespace

Kernel instance_kernel(std::shared_ptr<const Program> program, const Form& form, unsigned outputs) {
  const std::string variant = fmt::format("{}.{}", outputs_name(outputs), form_name(form));
  return cached_kernel(fmt::format("instance {} {}", variant, program->key()), [&] {
    return Kernel::trace(fmt::format("solve.{}.{}", program->name(), variant), ir::Domain::points, 1, {},
                         [program, form, outputs](ir::Builder&) {
                           const Program& p = *program;
                           InstanceNumbers numbers(p, form);
                           const auto output = [&](Output kind, const char* text, Storage storage, int rank) {
                             std::optional<TracedBuffer> buffer;
                             if (outputs & kind) buffer.emplace(text, storage, rank, ir::Access::write);
                             return buffer;
                           };
                           const Storage compute = storage_of(form.compute);
                           const auto cost = output(kCost, "cost", form.cost, 1);
                           const auto gradient = output(kGradient, "gradient", compute, 2);
                           const auto residuals = output(kResiduals, "residuals", compute, 2);
                           const auto jacobian = output(kJacobian, "jacobian", form.real, 2);
                           const auto diagonal = output(kDiagonal, "diagonal", form.real, 2);
                           numbers.declare_uniforms();
                           const Id i = own_index();
                           Lowering lower(p.graph(), form.compute,
                                          [&](uint32_t number) { return numbers(p.leaves()[number], i); });
                           if (cost) cost->store({i}, lower(p.cost()));
                           if (gradient) store_rows(*gradient, lower, p.gradient(), i);
                           if (residuals) store_rows(*residuals, lower, p.residuals(), i);
                           if (jacobian) store_rows(*jacobian, lower, p.stored(), i);
                           if (diagonal) store_rows(*diagonal, lower, p.diagonal(), i);
                         });
  });
}

Kernel hessian_kernel(std::shared_ptr<const Program> program, const Form& form) {
  const std::string variant = form_name(form);
  return cached_kernel(fmt::format("hessian {} {}", variant, program->key()), [&] {
    return Kernel::trace(fmt::format("solve.{}.hessian.{}", program->name(), variant), ir::Domain::points, 2,
                         {}, [program, form](ir::Builder& b) {
                           const Program& p = *program;
                           InstanceNumbers numbers(p, form);
                           const TracedBuffer hessian("hessian", form.real, 2, ir::Access::write);
                           numbers.declare_uniforms();
                           const Id i = b.emit(ir::Op::coord, Type::i32, {}, 0),
                                    column = b.emit(ir::Op::coord, Type::i32, {}, 1);
                           Lowering lower(p.graph(), form.compute, [&](uint32_t number) {
                             const Program::Leaf& leaf = p.leaves()[number];
                             if (leaf.kind != Program::Leaf::Kind::direction) return numbers(leaf, i);
                             const Id own = b.i32(p.first_column()[size_t(leaf.slot)] + leaf.index);
                             return b.select(b.op(ir::Op::ieq, {column, own}), b.number(form.compute, 1),
                                             b.number(form.compute, 0));
                           });
                           std::vector<Id> rows;
                           for (const Value& v : p.hessian_product()) rows.push_back(lower(v));
                           const int w = p.columns();
                           for (int row = 0; row < w;
                                ++row) {  // (row, column) of the upper triangle, row by row
                             const Id at = b.op(ir::Op::iadd, {column, b.i32(row * w - row * (row + 1) / 2)});
                             b.if_(b.op(ir::Op::ile, {b.i32(row), column}),
                                   [&] { hessian.store({at, i}, rows[size_t(row)]); });
                           }
                         });
  });
}

Kernel product_kernel(std::shared_ptr<const Program> program, Storage real, const SlotMask& mask) {
  std::string variant = fmt::format("product.{}", name(real));
  if (mask.inputs != Program::kAllSlots || mask.outputs != Program::kAllSlots)
    variant += fmt::format(".{:x}.{:x}", mask.inputs, mask.outputs);
  return cached_kernel(fmt::format("product {} {}", variant, program->key()), [&] {
    return Kernel::trace(
        fmt::format("solve.{}.{}", program->name(), variant), ir::Domain::points, 1, {},
        [program, real, mask](ir::Builder& b) {
          const Program& p = *program;
          const auto product = p.product(mask.inputs, mask.outputs);
          const TracedBuffer vector("p", real, 1, ir::Access::read),
              blocks("blocks", Storage::i32, 2, ir::Access::read);
          std::optional<TracedBuffer> jacobian;
          const int stored = p.stored_count();
          if (stored > 0) jacobian.emplace("jacobian", real, 2, ir::Access::read);
          const TracedBuffer slots("slots", real, 2, ir::Access::write);
          const Id i = own_index();
          std::vector<Id> first(p.widths().size(), ir::kNone);
          Lowering lower(product->graph, value_type(real), [&](uint32_t number) {
            if (int(number) < stored) return jacobian->load({b.i32(int(number)), i});
            const int column = int(number) - stored;
            const int slot = int(std::upper_bound(p.first_column().begin(), p.first_column().end(), column) -
                                 p.first_column().begin()) -
                             1;
            Id& at = first[size_t(slot)];
            if (at == ir::kNone) at = blocks.load({b.i32(slot), i});
            return vector.load({b.op(ir::Op::iadd, {at, b.i32(column - p.first_column()[size_t(slot)])})});
          });
          for (size_t k = 0; k < product->rows.size(); ++k)
            slots.store({b.i32(product->rows[k]), i}, lower(product->values[k]));
        });
  });
}

namespace {

/// candidate = x + step of wide Euclidean blocks, a lane a number: the kernel does not grow with the width.
template <class S, class R>
Kernel add_kernel() {
  const std::string name = fmt::format("solve.retract.{}{}.wide", lockstep::name(lockstep::detail::kType<S>),
                                       lockstep::name(lockstep::detail::kType<R>));
  return cached_kernel(name, [&] {
    return kernel(name, [](At<2> at, Grid<S, 2> x, Grid<R, 2> step, Grid<u32, 1> free, Out<S, 2> candidate) {
      candidate[at] = select(free[Val<i32>(at.y)] != 0u, x[at] + cast<S>(step[at]), x[at]);
    });
  });
}

}  // namespace

bool retracts_by_number(const TracedManifold& manifold) {
  return manifold.euclidean && manifold.manifold.ambient > kWidestInverse;
}

Kernel retract_kernel(std::shared_ptr<const TracedManifold> manifold, Storage state, Storage real) {
  if (retracts_by_number(*manifold))
    return state == Storage::f32 ? add_kernel<f32, f32>()
                                 : (real == Storage::f32 ? add_kernel<f64, f32>() : add_kernel<f64, f64>());
  const std::string variant = fmt::format("{}{}", name(state), name(real));
  return cached_kernel(fmt::format("retract {} {}", variant, manifold->key), [&] {
    return Kernel::trace(
        fmt::format("solve.retract.{}.{}", variant, to_hex(hash128(manifold->key)).substr(0, 16)),
        ir::Domain::points, 1, {}, [manifold, state, real](ir::Builder& b) {
          const Type type = value_type(state);
          const TracedBuffer from("state", state, 2, ir::Access::read),
              step("step", real, 2, ir::Access::read), free("free", Storage::u32, 1, ir::Access::read),
              to("candidate", state, 2, ir::Access::write);
          const Id block = own_index();
          const int ambient = manifold->manifold.ambient;
          std::vector<Id> x(size_t(ambient), ir::kNone);
          const auto own = [&](int c) {
            if (x[size_t(c)] == ir::kNone) x[size_t(c)] = from.load({block, b.i32(c)});
            return x[size_t(c)];
          };
          Lowering lower(*manifold->graph, type, [&](uint32_t leaf) {
            return int(leaf) < ambient ? own(int(leaf))
                                       : step.load_as(type, {block, b.i32(int(leaf) - ambient)});
          });
          const Id moves = b.op(ir::Op::ine, {free.load({block}), b.u32(0)});
          for (int c = 0; c < ambient; ++c)
            to.store({block, b.i32(c)}, b.select(moves, lower(manifold->plus[size_t(c)]), own(c)));
        });
  });
}

}  // namespace lockstep::solve
