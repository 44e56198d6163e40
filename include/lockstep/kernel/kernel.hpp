// Kernels: C++ lambdas traced once into the IR.
//
//   const auto heat = kernel("heat.step", [](At<3> at, Grid<f32, 3> t, Out<f32, 3> next, Param<f32> a) {
//     next[at] = fma(a, t[at.x(+1)] + t[at.x(-1)] - 2.0f * t[at], t[at]);
//   });
//   device.launch(heat, extent, t, next, 0.1f);
//
// Parameters of the lambda, in the order of the launch's arguments:
//   At<N>        first parameter of a points kernel: one lane per point of a domain of N = 1, 2 or 3 axes, bounds checked
//   Group<N>     first parameter of a groups kernel, with shared arrays and barriers: the extent is a number of groups
//   Grid<E, R>   a read-only buffer of rank R (1 to 4) and element type E
//   Out, InOut   a buffer that is written, or read and written
//   Param<T>     a number, or a registered struct of numbers (structure.hpp)
// The lambda runs once, inside kernel(), and may capture by reference. Extents, shapes and coordinates of buffers have
// the slowest axis first. Axes of At and Group are numbered from x = 0, the fastest. dynamic.hpp has kernels whose
// parameters are known only at run time.
#pragma once

#include <functional>
#include <memory>
#include <source_location>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "lockstep/kernel/control.hpp"
#include "lockstep/kernel/group.hpp"
#include "lockstep/kernel/report.hpp"
#include "lockstep/kernel/structure.hpp"

namespace lockstep {

enum class Boundary : uint8_t { clamp, periodic, zero, unchecked };

template <int N>
class Position;

/// One coordinate of a position. As a value, it is the coordinate (i32). Called with an integer, it returns the position
/// shifted along its axis.
template <int N>
class Axis {
 public:
  using value_type = i32;
  Axis(std::array<int, N> offsets, int axis) : offsets_(offsets), axis_(axis) {}
  operator Val<i32>() const;
  Position<N> operator()(detail::Whole<int> shift,
                         std::source_location where = std::source_location::current()) const;

 private:
  std::array<int, N> offsets_;
  int axis_;  // 0 = x, the fastest
  detail::OfTrace made_;
};

/// A point of the domain plus an offset known at trace time.
template <int N>
class Position {
 public:
  explicit Position(std::array<int, N> offsets)
      : x(offsets, 0), y(offsets, N > 1 ? 1 : 0), z(offsets, N > 2 ? 2 : 0), offsets_(offsets) {}
  Axis<N> x, y, z;
  /// Throws InputError while another kernel is traced.
  int offset(int axis) const {
    made_.check("a point");
    return offsets_[axis];
  }

 private:
  std::array<int, N> offsets_;
  detail::OfTrace made_;
};

/// The lane's own point.
template <int N>
class At : public Position<N> {
 public:
  At() : Position<N>(std::array<int, N>{}) {}
  /// Extent of the domain along an axis, 0 = x.
  Val<i32> extent(detail::Whole<int> axis) const {
    (void)this->offset(0);  // throws while another kernel is traced
    return Val<i32>::from(detail::builder().emit(ir::Op::extent, Type::i32, {}, detail::axis_of(N, axis)));
  }
};

template <int N>
Axis<N>::operator Val<i32>() const {
  made_.check("a point");
  const auto at = Val<i32>::from(detail::builder().emit(ir::Op::coord, Type::i32, {}, uint64_t(axis_)));
  return offsets_[axis_] ? at + offsets_[axis_] : at;
}
template <int N>
Position<N> Axis<N>::operator()(detail::Whole<int> shift, std::source_location where) const {
  detail::builder().at(where);
  made_.check("a point");
  auto offsets = offsets_;
  offsets[axis_] += shift;
  return Position<N>(offsets);
}

/// The position of a lane in a groups kernel. Axis 0 = x.
template <int N>
class Group {
 public:
  Val<i32> id(detail::Whole<int> axis = 0) const { return place(ir::Op::coord, detail::axis_of(N, axis)); }
  Val<i32> count(detail::Whole<int> axis = 0) const {
    return place(ir::Op::extent, detail::axis_of(N, axis));
  }
  Val<i32> local(detail::Whole<int> axis = 0) const {
    return place(ir::Op::local_id, detail::axis_of(3, axis));
  }
  Val<i32> lane() const { return place(ir::Op::lane, 0); }
  int size(detail::Whole<int> axis = 0) const { return function().group[detail::axis_of(3, axis)]; }
  int lanes() const { return function().group_lanes(); }
  /// id * size + local: the number of the lane along the axis, counted over all groups.
  Val<i32> global(detail::Whole<int> axis = 0) const { return id(axis) * size(axis) + local(axis); }

 private:
  const ir::Function& function() const {
    made_.check("a group");
    return detail::builder().function();
  }
  Val<i32> place(ir::Op op, uint64_t axis) const {
    made_.check("a group");
    return Val<i32>::from(detail::builder().emit(op, Type::i32, {}, axis));
  }
  detail::OfTrace made_;
};

template <class T>
class Param {
 public:
  using value_type = T;
  explicit Param(ir::Id id) : value_(Val<T>::from(id)) {}
  operator Val<T>() const { return value_; }

 private:
  Val<T> value_;
};
/// A registered struct with its fields as values.
template <detail::Structure S>
class Param<S> : public detail::StructOf<S>::Values {
 public:
  using Structure = S;
  explicit Param(const typename detail::StructOf<S>::Values& values) : detail::StructOf<S>::Values(values) {}
};

namespace detail {

/// A type that may be a coordinate.
template <class I>
concept Coordinate = std::convertible_to<const I&, Coord>;

/// A buffer during tracing: the base of Grid, Out and InOut.
class BufferRef {
 public:
  BufferRef(uint32_t buffer, int rank) : rank_(rank), buffer_(buffer) {}
  /// Extent of an axis (slowest first) as i32.
  Val<i32> size(int axis) const;
  /// Number of the buffer in its kernel. Throws InputError while another kernel is traced.
  uint32_t index() const {
    made_.check("a buffer");
    return buffer_;
  }
  /// Makes launches reject (InputError) a buffer whose size along `axis` (0 = slowest) is not `size`, or not the size of
  /// `other` along `other_axis`.
  void require(int axis, int64_t size,
               const std::source_location& where = std::source_location::current()) const;
  void require(int axis, const BufferRef& other, int other_axis,
               const std::source_location& where = std::source_location::current()) const;

 protected:
  /// Element offset of explicit coordinates, slowest first. No check.
  ir::Id offset(std::span<const ir::Id> coordinates) const;
  ir::Id offset(std::initializer_list<ir::Id> coordinates) const {
    return offset(std::span<const ir::Id>(coordinates.begin(), coordinates.size()));
  }
  /// Element offset of explicit coordinates. If the author named a boundary rule, it maps each of them inside. `inside`:
  /// whether all were inside, for the rule zero.
  ir::Id offset_by_rule(std::initializer_list<ir::Id> coordinates, ir::Id* inside) const;
  /// Element offset of a point plus leading coordinates; marks the buffer as indexed by the points of the domain.
  ir::Id offset_at(std::initializer_list<ir::Id> leading, const int* offsets, int n, Boundary boundary,
                   ir::Id* inside) const;

  int rank_;
  Boundary boundary_ = Boundary::clamp;
  bool ruled_ = false;  // set if the author named the boundary rule

 private:
  uint32_t buffer_;
  OfTrace made_;
};

template <class E>
using BufferElement = Element<value_of<E>, ir::Op::load, ir::Op::store>;

}  // namespace detail

/// 2 or 4 values that are adjacent in memory.
template <class T, int K>
struct Wide {
  std::array<Val<T>, K> v;
  const Val<T>& operator[](int k) const { return v[k]; }
};

/// A read-only buffer. Reads through a shifted position beyond the boundary use the nearest element by default. With
/// `periodic()` they wrap, with `zero()` they give 0, and with `unchecked()` they must be inside. Reads by explicit
/// coordinates must be inside, unless a rule is named (`clamped()`, `periodic()`, `zero()`), which applies to each
/// coordinate.
template <class E, int R>
class Grid : public detail::BufferRef {
  using Where = std::source_location;

 public:
  using T = detail::value_of<E>;
  using Element = E;
  static constexpr int kRank = R;
  static constexpr ir::Access kAccess = ir::Access::read;
  explicit Grid(uint32_t buffer) : BufferRef(buffer, R) {}

  Grid with(Boundary boundary) const {
    Grid g = *this;
    g.boundary_ = boundary;
    g.ruled_ = boundary != Boundary::unchecked;
    return g;
  }
  Grid clamped() const { return with(Boundary::clamp); }
  Grid periodic() const { return with(Boundary::periodic); }
  Grid zero() const { return with(Boundary::zero); }
  Grid unchecked() const { return with(Boundary::unchecked); }

  /// Value at a point of the domain (rank of the domain = rank of the buffer).
  Val<T> operator[](const Position<R>& p) const { return read_at({}, p); }
  /// Value at leading coordinates and a point: rank of the domain + number of coordinates = R.
  Val<T> operator()(detail::Coord lead, const Position<R - 1>& p) const
    requires(R > 1)
  {
    return read_at({lead.id()}, p);
  }
  /// Value at explicit coordinates, slowest first.
  Val<T> operator()(detail::Coord a, Where where = Where::current()) const
    requires(R == 1)
  {
    return value_at({a.id()}, where);
  }
  Val<T> operator()(detail::Coord a, detail::Coord b, Where where = Where::current()) const
    requires(R == 2)
  {
    return value_at({a.id(), b.id()}, where);
  }
  Val<T> operator()(detail::Coord a, detail::Coord b, detail::Coord c, Where where = Where::current()) const
    requires(R == 3)
  {
    return value_at({a.id(), b.id(), c.id()}, where);
  }
  Val<T> operator()(detail::Coord a, detail::Coord b, detail::Coord c, detail::Coord d,
                    Where where = Where::current()) const
    requires(R == 4)
  {
    return value_at({a.id(), b.id(), c.id(), d.id()}, where);
  }
  Val<T> operator[](detail::Coord i) const
    requires(R == 1)
  {
    ir::Id inside = ir::kNone;
    const ir::Id at = offset_by_rule({i.id()}, &inside);
    return loaded(at, inside);
  }

  /// The same buffer with reads that bypass the caches, for data that is used once.
  Grid streaming() const {
    Grid g = *this;
    g.flags_ = ir::kStreaming;
    return g;
  }
  /// Reads K = 2 or 4 neighbours along the last axis in one access. The element offset must be a multiple of K.
  template <int K, class... I>
    requires(sizeof...(I) == R)
  Wide<T, K> wide(const I&... i) const {
    const ir::Id all = load(offset({detail::id_of<i32>(i)...}), K, flags_);
    return [&]<int... k>(std::integer_sequence<int, k...>) {
      return Wide<T, K>{
          {Val<T>::from(detail::builder().emit(ir::Op::extract, detail::kType<T>, {all}, uint64_t(k)))...}};
    }(std::make_integer_sequence<int, K>{});
  }
  /// Starts an asynchronous copy of `K` elements (4, 8 or 16 bytes in all) from explicit coordinates to `shared[at]`.
  /// async_commit() and async_wait() complete it.
  template <int K = 1, class S, class... I>
    requires(sizeof...(I) == R)
  void copy_async(const SharedArray<T>& shared, const S& at, const I&... i) const {
    ir::Instruction copy{ir::Op::async_copy};
    copy.lanes = K;
    copy.imm = uint64_t(shared.id()) << 32 | this->index();
    copy.args[0] = detail::id_of<i32>(at);
    copy.args[1] = offset({detail::id_of<i32>(i)...});
    detail::builder().append(copy);
  }

 private:
  ir::Id load(ir::Id at, int lanes, uint8_t flags) const {
    ir::Instruction load{ir::Op::load};
    load.type = detail::kType<T>;
    load.lanes = uint8_t(lanes);
    load.flags = flags;
    load.imm = this->index();
    load.args[0] = at;
    return detail::builder().append(load);
  }
  template <int N>
  Val<T> read_at(std::initializer_list<ir::Id> leading, const Position<N>& p) const {
    std::array<int, 3> offsets{};
    for (int a = 0; a < N; ++a) offsets[a] = p.offset(a);
    ir::Id inside = ir::kNone;
    const ir::Id at = offset_at(leading, offsets.data(), N, boundary_, &inside);
    return loaded(at, inside);
  }
  Val<T> value_at(std::initializer_list<ir::Id> coordinates, const std::source_location& where) const {
    detail::builder().at(where);
    ir::Id inside = ir::kNone;
    const ir::Id at = offset_by_rule(coordinates, &inside);
    return loaded(at, inside);
  }
  Val<T> loaded(ir::Id at, ir::Id inside) const {
    const auto value = Val<T>::from(load(at, 1, flags_));
    return inside == ir::kNone ? value : select(Val<bool>::from(inside), value, T(0));
  }
  uint8_t flags_ = 0;
};

/// A buffer that is written, or read and written. `b[at] = v`, `b(z, y, x) = v`; InOut also reads.
template <class E, int R, ir::Access kHow>
class WritableGrid : public detail::BufferRef {
  using Where = std::source_location;

 public:
  using T = detail::value_of<E>;
  using Element = E;
  static constexpr int kRank = R;
  static constexpr ir::Access kAccess = kHow;
  explicit WritableGrid(uint32_t buffer) : BufferRef(buffer, R) {}

  auto operator[](const Position<R>& p) const { return element_at({}, p); }
  auto operator()(detail::Coord lead, const Position<R - 1>& p) const
    requires(R > 1)
  {
    return element_at({lead.id()}, p);
  }
  /// The element at explicit coordinates, slowest first, which must be inside.
  auto operator()(detail::Coord a, Where where = Where::current()) const
    requires(R == 1)
  {
    return located_element({a.id()}, where);
  }
  auto operator()(detail::Coord a, detail::Coord b, Where where = Where::current()) const
    requires(R == 2)
  {
    return located_element({a.id(), b.id()}, where);
  }
  auto operator()(detail::Coord a, detail::Coord b, detail::Coord c, Where where = Where::current()) const
    requires(R == 3)
  {
    return located_element({a.id(), b.id(), c.id()}, where);
  }
  auto operator()(detail::Coord a, detail::Coord b, detail::Coord c, detail::Coord d,
                  Where where = Where::current()) const
    requires(R == 4)
  {
    return located_element({a.id(), b.id(), c.id(), d.id()}, where);
  }
  auto operator[](detail::Coord i) const
    requires(R == 1)
  {
    return detail::BufferElement<E>(this->index(), offset({i.id()}));
  }

  /// Writes K = 2 or 4 neighbours along the last axis in one access. The element offset must be a multiple of K.
  template <int K, class... I>
    requires(sizeof...(I) == R)
  void store_wide(const Wide<T, K>& values, const I&... i) const {
    ir::Instruction store{ir::Op::store};
    store.lanes = uint8_t(K);
    store.imm = this->index();
    store.args[0] = offset({detail::id_of<i32>(i)...});
    for (int k = 0; k < K; ++k) store.args[1 + k] = values[k].id();
    detail::builder().append(store);
  }
  /// Writes one element, bypassing the caches.
  template <class... I>
    requires(sizeof...(I) == R)
  void store_streaming(const Val<T>& value, const I&... i) const {
    ir::Instruction store{ir::Op::store};
    store.flags = ir::kStreaming;
    store.imm = this->index();
    store.args[0] = offset({detail::id_of<i32>(i)...});
    store.args[1] = value.id();
    detail::builder().append(store);
  }
  /// Atomic operations at a coordinate; each returns the old value. For buffers of any rank and for all operations, use
  /// those of elements: `counts(y, x).atomic_add(1u)`.
  Val<T> atomic_add(detail::Coord i, const Val<T>& v) const
    requires(R == 1)
  {
    return (*this)[i].atomic_add(v);
  }
  Val<T> atomic_min(detail::Coord i, const Val<T>& v) const
    requires(R == 1)
  {
    return (*this)[i].atomic_min(v);
  }
  Val<T> atomic_max(detail::Coord i, const Val<T>& v) const
    requires(R == 1)
  {
    return (*this)[i].atomic_max(v);
  }
  Val<T> atomic_or(detail::Coord i, const Val<T>& v) const
    requires(R == 1)
  {
    return (*this)[i].atomic_or(v);
  }
  Val<T> atomic_and(detail::Coord i, const Val<T>& v) const
    requires(R == 1)
  {
    return (*this)[i].atomic_and(v);
  }
  Val<T> atomic_exchange(detail::Coord i, const Val<T>& v) const
    requires(R == 1)
  {
    return (*this)[i].atomic_exchange(v);
  }

 private:
  template <int N>
  auto element_at(std::initializer_list<ir::Id> leading, const Position<N>& p) const {
    std::array<int, 3> offsets{};
    for (int a = 0; a < N; ++a) offsets[a] = p.offset(a);
    ir::Id inside = ir::kNone;
    return detail::BufferElement<E>(this->index(),
                                    offset_at(leading, offsets.data(), N, Boundary::clamp, &inside));
  }
  auto located_element(std::initializer_list<ir::Id> coordinates, const std::source_location& where) const {
    detail::builder().at(where);
    return detail::BufferElement<E>(this->index(), offset(coordinates));
  }
};
template <class E, int R>
using Out = WritableGrid<E, R, ir::Access::write>;
template <class E, int R>
using InOut = WritableGrid<E, R, ir::Access::read_write>;

/// Options of a kernel.
struct KernelOptions {
  /// Lanes of a group along x, y, z. Required for groups kernels. For points kernels, 0 lets the back end choose.
  std::array<int32_t, 3> group{0, 0, 0};
  /// Requested number of resident groups per multiprocessor, which limits the registers on CUDA; 0: no request.
  int32_t min_blocks = 0;
  /// False: products are rounded before they are added, as in plain C++ without fma. For a single product use
  /// rounded(x).
  bool contract = true;
};

/// Makes launches reject (InputError, naming the buffer) buffers whose shape differs from that of `first`.
template <class First, class... More>
void require_same_shape(const First& first, const More&... more) {
  const auto same = [&](const auto& other) {
    static_assert(std::remove_cvref_t<decltype(other)>::kRank == First::kRank, "buffers of one rank");
    for (int axis = 0; axis < First::kRank; ++axis) other.require(axis, first, axis);
  };
  (same(more), ...);
}

/// An alternative to the portable kernel on CUDA, in CUDA C++ for NVRTC, with the same arguments.
struct NativeCuda {
  std::string source;
  std::string entry;
};

/// A parameter of a kernel for launches: a buffer, a number or a struct.
struct KernelParameter {
  std::string name;
  bool buffer = true;
  Storage storage = Storage::f32;  // of a buffer
  int rank = 0;                    // of a buffer
  bool read = false, written = false;
  Type type = Type::none;  // of a number
  const ir::StructType* structure = nullptr;
};

/// A traced kernel: a cheap handle to shared, immutable state. Using an empty handle throws InputError.
class Kernel {
 public:
  Kernel() = default;
  const std::string& name() const;
  /// The traced, unoptimised IR. `index` is the type of element offsets (i32 or i64). With `long_axes`, shifted
  /// coordinates may exceed 2^31 - 1.
  const ir::Function& function(Type index = Type::i32, bool long_axes = false) const;
  /// Buffers in the order of declaration, then numbers. In kernels with typed parameters their names are b0, b1 … and
  /// p0, p1 …
  std::vector<KernelParameter> parameters() const;
  /// Unique for each traced kernel of the process.
  uint64_t id() const;

  using Trace = std::function<void(ir::Builder&)>;
  /// Calls `trace` once.
  static Kernel trace(std::string name, ir::Domain domain, int rank, KernelOptions options,
                      const Trace& trace,
                      const std::source_location& where = std::source_location::current());

  /// The same function as a separate kernel.
  Kernel renamed(std::string name) const;

  struct State;
  State& state() const;

 private:
  explicit Kernel(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

namespace detail {
template <class P>
struct Domain {
  static constexpr int kRank = 0;
};
template <int N>
struct Domain<At<N>> {
  static constexpr int kRank = N;
  static constexpr ir::Domain kKind = ir::Domain::points;
};
template <int N>
struct Domain<Group<N>> {
  static constexpr int kRank = N;
  static constexpr ir::Domain kKind = ir::Domain::groups;
};

template <class P>
inline constexpr bool kParameter = requires {
  P::kRank;
  P::kAccess;
};
template <class T>
inline constexpr bool kParameter<Param<T>> = true;

template <class P>
P bind(ir::Builder& b) {
  static_assert(
      kParameter<P>,
      "a parameter of a kernel is a Grid, Out, InOut or Param, taken by value; arrays and variables are made "
      "inside of its body");
  if constexpr (requires {
                  P::kRank;
                  P::kAccess;
                }) {
    ir::Function& f = b.function();
    f.buffers.push_back(
        {"b" + std::to_string(f.buffers.size()), kStorage<typename P::Element>, P::kRank, P::kAccess});
    f.buffers.back().position = int(f.buffers.size() + f.argument_numbers()) - 1;
    f.buffers.back().place = b.place();
    return P(uint32_t(f.buffers.size() - 1));
  } else if constexpr (requires { typename P::Structure; }) {
    return P(bind_struct<typename P::Structure>(b, "p" + std::to_string(b.function().argument_numbers())));
  } else {
    ir::Function& f = b.function();
    using T = typename P::value_type;
    f.scalars.push_back({"p" + std::to_string(f.argument_numbers()), kType<T>, b.place()});
    return P(b.emit(ir::Op::param, kType<T>, {}, f.scalars.size() - 1));
  }
}

template <class L>
struct Signature : Signature<decltype(&L::operator())> {};
template <class C, class R, class First, class... P>
struct Signature<R (C::*)(First, P...) const> {
  static_assert(std::same_as<R, void>,
                "a kernel returns nothing: its results are written to Out and InOut buffers");
};
template <class C, class First, class... P>
struct Signature<void (C::*)(First, P...) const> {
  using Place = First;
  template <class L>
  static void run(const L& body, ir::Builder& b) {
    std::tuple<P...> params{bind<P>(b)...};  // braces fix the order of the parameters
    std::apply([&](auto&... p) { body(First(), p...); }, params);
  }
};
}  // namespace detail

/// Traces `body` into a kernel. Throws InputError if the body violates a rule of the language.
template <class L>
Kernel kernel(std::string name, L body, KernelOptions options = {},
              std::source_location where = std::source_location::current()) {
  using Signature = detail::Signature<L>;
  using Place = detail::Domain<typename Signature::Place>;
  static_assert(Place::kRank > 0, "the first parameter of a kernel is At<N> or Group<N>");
  return Kernel::trace(
      std::move(name), Place::kKind, Place::kRank, options,
      [&body](ir::Builder& b) { Signature::run(body, b); }, where);
}

}  // namespace lockstep
