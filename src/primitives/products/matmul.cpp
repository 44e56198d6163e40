// Products of f32 and f64 matrices by kernels of this library. All forms add the products of an element in the order of
// k, so they give the same bits.
#include "device/variants/memory.hpp"
#include "lockstep/kernel/vec.hpp"
#include "lockstep/kernel/wide.hpp"
#include "lockstep/primitives.hpp"
#include "primitives/flat.hpp"
#include "primitives/kernels.hpp"
#include "primitives/products/column_product.hpp"
#include "primitives/products/products.hpp"
#include "primitives/products/slim_product.hpp"
#include "primitives/products/tensor/tensor.hpp"

namespace lockstep::primitives {

namespace {

constexpr int kTile = 64, kDepth = 16, kBlock = 4, kSide = kTile / kBlock, kTileLanes = kSide * kSide,
              kStrip = 6, kPart = 3;

/// A group has a tile of c, a lane 4 rows by 4 columns of it: columns side by side belong to lanes side by side.
template <class T, int R>
void tile_product(const Group<R>& g, const Grid<T, R>& a, const Grid<T, R>& b, const Out<T, R>& c) {
  const SharedArray<T> as(kTile * kDepth), bs(kDepth * kTile);
  const Val<i32> tx = g.local(0), ty = g.local(1), lane = g.lane(), batch = g.id(R - 1);
  const Val<i32> row0 = g.id(1) * kTile, column0 = g.id(0) * kTile;
  const Val<i32> rows = a.size(R - 2), depth = a.size(R - 1), columns = b.size(R - 1);
  VarArray<T, kBlock * kBlock> sum(T(0));
  for_(0, depth, kDepth, [&](Val<i32> k0) {
    for (int p = 0; p < kTile * kDepth; p += kTileLanes) {
      const Val<i32> e = lane + p, i = e / kDepth, k = e % kDepth;
      // Rows and columns beyond the edge are computed from the values at it and never stored.
      as[k * kTile + i] = element<R>(a, batch, min(row0 + i, rows - 1), min(k0 + k, depth - 1));
    }
    for (int p = 0; p < kDepth * kTile; p += kTileLanes) {
      const Val<i32> e = lane + p, k = e / kTile, j = e % kTile;
      bs[k * kTile + j] = element<R>(b, batch, min(k0 + k, depth - 1), min(column0 + j, columns - 1));
    }
    barrier();
    for_(0, min(depth - k0, kDepth), [&](Val<i32> k) {
      std::vector<Val<T>> left, right;
      for (int i = 0; i < kBlock; ++i) left.push_back(as[k * kTile + ty * kBlock + i]);
      for (int j = 0; j < kBlock; ++j) right.push_back(bs[k * kTile + tx + j * kSide]);
      for (int i = 0; i < kBlock; ++i)
        for (int j = 0; j < kBlock; ++j)
          sum[i * kBlock + j] = fma(left[size_t(i)], right[size_t(j)], sum[i * kBlock + j]);
    });
    barrier();
  });
  for (int i = 0; i < kBlock; ++i)
    for (int j = 0; j < kBlock; ++j) {
      const Val<i32> row = row0 + ty * kBlock + i, column = column0 + tx + j * kSide;
      if_(row < rows && column < columns, [&] { element<R>(c, batch, row, column) = sum[i * kBlock + j]; });
    }
}

/// Lanes of a group each way, rows and columns of c of a lane.
template <int LanesX, int LanesY, int Rows, int Columns>
struct WideTile {
  static constexpr int kAcross = LanesX, kDown = LanesY, kLanes = LanesX * LanesY, kOwnRows = Rows,
                       kOwnColumns = Columns;
  static constexpr int kRows = LanesY * Rows, kColumns = LanesX * Columns;
};
template <class T>
using WholeTile = WideTile<kSide, kSide, 32 / int(sizeof(T)), 32 / int(sizeof(T))>;
using SmallTile = WideTile<kSide / 2, kSide, 4, 8>;  // f32: 64 x 64, for GPUs that large tiles would not fill

/// Of 16 bytes, the most that one access moves: all three matrices begin at a multiple of them, and so do their
/// rows. A group has a tile of c. The tiles of the next step come into the other half of the shared arrays meanwhile.
template <class T, int R, class Tile>
void wide_product(const Group<R>& g, const Grid<T, R>& a, const Grid<T, R>& b, const Out<T, R>& c) {
  constexpr int kQuad = 16 / int(sizeof(T)), kQuads = Tile::kOwnColumns / kQuad, kLanes = Tile::kLanes;
  constexpr int kPair = 2;  // steps of k for one access to as: four would spill registers
  // Rows of as are longer by a quad: lanes that read neighbouring rows meet different banks.
  constexpr int kPitch = kDepth + kQuad, kLeft = Tile::kRows * kPitch, kRight = kDepth * Tile::kColumns;
  const SharedArray<T> as(2 * kLeft), bs(2 * kRight);
  const Val<i32> tx = g.local(0), ty = g.local(1), lane = g.lane(), batch = g.id(R - 1);
  const Val<i32> row0 = g.id(1) * Tile::kRows, column0 = g.id(0) * Tile::kColumns;
  const Val<i32> rows = a.size(R - 2), depth = a.size(R - 1), columns = b.size(R - 1);
  const auto fetch = [&](const Val<i32>& step, const Val<i32>& half) {
    const Val<i32> k0 = step * kDepth;
    // Elements beyond the edge are copies of those at it and never used.
    for (int p = 0; p < Tile::kRows * kDepth / kQuad; p += kLanes) {
      const Val<i32> e = lane + p, i = e / (kDepth / kQuad), k = e % (kDepth / kQuad) * kQuad;
      copy_element<kQuad>(a, as, half * kLeft + (i * kPitch + k), batch, min(row0 + i, rows - 1),
                          min(k0 + k, depth - kQuad));
    }
    for (int p = 0; p < Tile::kColumns * kDepth / kQuad; p += kLanes) {
      constexpr int kWide = Tile::kColumns / kQuad;
      const Val<i32> e = lane + p, k = e / kWide, j = e % kWide * kQuad;
      copy_element<kQuad>(b, bs, half * kRight + (k * Tile::kColumns + j), batch, min(k0 + k, depth - 1),
                          min(column0 + j, columns - kQuad));
    }
    async_commit();
  };
  VarArray<T, Tile::kOwnRows * Tile::kOwnColumns> sum(T(0));
  const Val<i32> steps = (depth + (kDepth - 1)) / kDepth;
  fetch(0, 0);
  for_(0, steps, [&](Val<i32> step) {
    async_wait(0);
    barrier();
    const Val<i32> half = step & 1;
    if_(step + 1 < steps, [&] { fetch(step + 1, 1 - half); });
    const Val<i32> left0 = half * kLeft + ty * kPitch, right0 = half * kRight + tx * kQuad;
    for_(0, min(depth - step * kDepth, kDepth), kPair, [&](Val<i32> k) {
      std::vector<Wide<T, kPair>> left;
      for (int i = 0; i < Tile::kOwnRows; ++i)
        left.push_back(wide<kPair>(as, left0 + (i * Tile::kDown * kPitch) + k));
      for (int n = 0; n < kPair; ++n) {
        std::vector<Wide<T, kQuad>> right;
        for (int q = 0; q < kQuads; ++q)
          right.push_back(wide<kQuad>(
              bs, right0 + k * Tile::kColumns + (n * Tile::kColumns + q * Tile::kAcross * kQuad)));
        for (int i = 0; i < Tile::kOwnRows; ++i)
          for (int j = 0; j < Tile::kOwnColumns; ++j) {
            Var<T>& s = sum[i * Tile::kOwnColumns + j];
            s = fma(left[size_t(i)][n], right[size_t(j / kQuad)][j % kQuad], s);
          }
      }
    });
  });
  for (int i = 0; i < Tile::kOwnRows; ++i)
    for (int q = 0; q < kQuads; ++q) {
      const Val<i32> row = row0 + ty + i * Tile::kDown,
                     column = column0 + tx * kQuad + q * Tile::kAcross * kQuad;
      if_(row < rows && column < columns, [&] {
        const auto quad = [&]<int... n>(std::integer_sequence<int, n...>) {
          return Wide<T, kQuad>{{Val<T>(sum[i * Tile::kOwnColumns + q * kQuad + n])...}};
        }(std::make_integer_sequence<int, kQuad>{});
        if constexpr (R == 3)
          c.template store_wide<kQuad>(quad, batch, row, column);
        else
          c.template store_wide<kQuad>(quad, row, column);
      });
    }
}

/// Columns of half a panel: a line of the cache.
template <class T>
constexpr int kPanel = 64 / int(sizeof(T));

/// Copies of a packed product.
struct Packed {
  int64_t strips, parts, panels, depth, width;
  Packed(const Shape& a, const Shape& c, int64_t size) : depth(a[a.rank() - 1]), width(2 * (64 / size)) {
    const int r = c.rank();
    const int64_t count = r == 3 ? c[0] : 1;
    strips = count * divide_up(c[r - 2], kStrip), parts = strips * (kStrip / kPart);
    panels = count * divide_up(c[r - 1], width);
  }
  int64_t elements() const { return depth * (parts * kPart + panels * width); }
};

/// A lane has kStrip rows by two columns, from copies of a in strips of so many rows, in parts of kPart rows each, and
/// of b in panels of two times kPanel<T> columns, both in the order of the additions: each is read from beginning to
/// end, a panel out of the second cache for all strips.
template <class T>
void packed_product(const At<3>& at, const Grid<T, 3>& parts, const Grid<T, 3>& panels, const Out<T, 3>& c) {
  const Val<i32> rows = c.size(1), columns = c.size(2), height = (rows + (kStrip - 1)) / kStrip;
  const Val<i32> strip = at.y, panel = at.z, across = (columns + (2 * kPanel<T> - 1)) / (2 * kPanel<T>);
  const Val<i32> batch = panel / across, row0 = strip * kStrip,
                 from = (batch * height + strip) * (kStrip / kPart);
  VarArray<T, 2 * kStrip> sum(T(0));
  for_(0, panels.size(1), [&](Val<i32> k) {
    const Val<T> right[] = {panels(panel, k, at.x), panels(panel, k, at.x + kPanel<T>)};
    for (int i = 0; i < kStrip; ++i) {
      const Val<T> left = parts(from + i / kPart, k, i % kPart);
      for (int j = 0; j < 2; ++j) sum[2 * i + j] = fma(left, right[j], sum[2 * i + j]);
    }
  });
  const Val<i32> column0 = panel % across * (2 * kPanel<T>)+at.x;
  for (int i = 0; i < kStrip; ++i)
    for (int j = 0; j < 2; ++j)
      if_(row0 + i < rows && column0 + j * kPanel<T> < columns,
          [&] { c(batch, row0 + i, column0 + j * kPanel<T>) = sum[2 * i + j]; });
}

/// Rows of a, kPart of them side by side, as few as vectors can interleave; those beyond the edge repeat it and are
/// never used.
template <class T>
void pack_rows(const At<2>& at, const Grid<T, 3>& a, const Out<T, 3>& parts) {
  const Val<i32> part = at.y, height = parts.size(0) / a.size(0), k = at.x;
  for (int i = 0; i < kPart; ++i)
    parts(part, k, i) = a(part / height, min(part % height * kPart + i, a.size(1) - 1), k);
}
template <class T>
void pack_columns(const At<3>& at, const Grid<T, 3>& b, const Out<T, 3>& panels) {
  const Val<i32> panel = at.z, across = panels.size(0) / b.size(0);
  panels[at] = b(panel / across, at.y, min(panel % across * (2 * kPanel<T>)+at.x, b.size(2) - 1));
}

template <class T, int R>
const Kernel& product_kernel(Product form) {
  const std::string word = R == 3 ? "matmul.batch" : "matmul";
  const auto by_tiles = [&]<class Tile>(Tile, const char* ending) {
    return kernel(
        kernel_name<T>(word + ending),
        [](Group<R> g, Grid<T, R> a, Grid<T, R> b, Out<T, R> c) { wide_product<T, R, Tile>(g, a, b, c); },
        {.group = {Tile::kAcross, Tile::kDown, 1}, .min_blocks = 2});
  };
  static const Kernel wide = by_tiles(WholeTile<T>(), ".wide");
  static const Kernel tiles =
      kernel(kernel_name<T>(word + ".tiles"),
             [](Group<R> g, Grid<T, R> a, Grid<T, R> b, Out<T, R> c) { tile_product<T, R>(g, a, b, c); },
             {.group = {kSide, kSide, 1}});
  static const Kernel columns =
      kernel(kernel_name<T>(word),
             [](At<R> at, Grid<T, R> a, Grid<T, R> b, Out<T, R> c) { column_product<T>(at, a, b, c); });
  if (is_slim(form)) {
    const auto slim = [&]<bool Quads>(std::bool_constant<Quads>, const char* ending) {
      return kernel(
          kernel_name<T>(word + ending),
          [](Group<R> g, Grid<T, R> a, Grid<T, R> b, Out<T, R> c) { slim_product<T, R, Quads>(g, a, b, c); },
          {.group = {SlimTile<T>::kColumns, SlimTile<T>::kLines, 1}});
    };
    static const Kernel any = slim(std::false_type(), ".slim"), quads = slim(std::true_type(), ".slim_wide");
    return form == Product::slim ? any : quads;
  }
  if constexpr (std::is_same_v<T, f64>)
    if (by_tensor_cores(form)) {
      static const Kernel narrow = tensor_kernel(64, R == 3), broad = tensor_kernel(128, R == 3);
      return form == Product::tensor_64 ? narrow : broad;
    }
  if constexpr (std::is_same_v<T, f32>)
    if (form == Product::wide_64) {
      static const Kernel small = by_tiles(SmallTile(), ".wide_64");
      return small;
    }
  return form == Product::wide ? wide : form == Product::tiles ? tiles : columns;
}

/// Quads of 16 bytes: where each row begins at a multiple of them, and rows consist of them.
bool in_quads(const Buffer& x) {
  const int r = x.shape().rank(), quad = 16 / size_of(x.storage());
  bool whole = x.offset() % quad == 0 && x.shape()[r - 1] % quad == 0;
  for (int a = 0; a < r - 1; ++a) whole &= x.strides()[size_t(a)] % quad == 0;
  return whole && x.native() % 16 == 0;
}

/// The choice of a form depends on these.
struct Matrices {
  Shape a, c;
  bool contiguous, quads;
};
Matrices describe(const Buffer& a, const Buffer& b, const Buffer& c) {
  return {a.shape(), c.shape(), a.contiguous() && b.contiguous() && c.contiguous(),
          in_quads(a) && in_quads(b) && in_quads(c)};
}

int64_t wide_bytes(Product form, Storage storage) {
  const int quad = 16 / size_of(storage), tile = product_tile(form, storage).rows;
  return 2 * size_of(storage) * (int64_t(tile) * (kDepth + quad) + int64_t(kDepth) * tile);
}

/// Wide tiles work on all of their places.
bool fills_little(Product form, Storage storage, const Shape& c) {
  if (form != Product::wide && form != Product::wide_64) return false;
  const ProductTile tile = product_tile(form, storage);
  const int r = c.rank();
  return 2 * c[r - 2] * c[r - 1] <=
         divide_up(c[r - 2], tile.rows) * tile.rows * divide_up(c[r - 1], tile.columns) * tile.columns;
}

std::string why_not(Product form, const Device& device, const Matrices& m, Storage storage) {
  if (by_tensor_cores(form)) return no_tensor_cores(device, storage);
  if (form == Product::packed && !m.contiguous) return "a window with gaps, where copies take whole matrices";
  if (form == Product::wide_64 && storage == Storage::f64) return "f64, whose wide tiles are no larger";
  const bool wide = form == Product::wide || form == Product::wide_64;
  if ((wide || form == Product::slim_wide) && !m.quads) return "rows that do not consist of 16 bytes";
  const int64_t bytes = wide            ? wide_bytes(form, storage)
                        : is_slim(form) ? std::max(SlimTile<f32>::kBytes, SlimTile<f64>::kBytes)
                                        : 0;
  return bytes > device.info().limits.shared_bytes ? "too little shared memory" : "";
}

/// Results for each multiprocessor of a GPU, in tiles of the wide form. Two of its groups fit one; where they are fewer, smaller tiles
/// busy more of them.
double waves_of(const Device& device, const Matrices& m, Storage storage) {
  if (capabilities_of(device).host_memory) return 0;
  const auto [rows, columns] = product_tile(Product::wide, storage);
  return double(m.c.elements()) / (double(rows) * columns * std::max(2, device.info().multiprocessors));
}

Product choose_product(const Device& device, const Matrices& m, Storage storage, std::string_view asked) {
  const int r = m.c.rank();
  const variants::Axis axes[] = {{"least_side", double(std::min({m.c[r - 2], m.c[r - 1], m.a[r - 1]}))},
                                 {"waves", waves_of(device, m, storage)}};
  const auto applies = [&](int form) {
    std::string why = why_not(Product(form), device, m, storage);
    if (asked.empty() && why.empty() && fills_little(Product(form), storage, m.c))
      return std::string("tiles that the results fill by half or less");
    return why;
  };
  const auto scratch = [&](int form) { return plain_scratch(Product(form), storage, m.a, m.c); };
  return Product(variants::choose(matmul_computation(), device, {.of = name(storage), .axes = axes}, asked,
                                  variants::with_memory(matmul_computation(), device, applies, scratch))
                     .variant);
}

template <class T>
void multiply_packed(const Device& device, const Stream& stream, const Factors& abc) {
  const auto batched = [](const Buffer& x) {
    const Shape& s = x.shape();
    return s.rank() == 3 ? x : x.reshape({1, s[0], s[1]});
  };
  const Buffer a = batched(abc.a), b = batched(abc.b), c = batched(abc.c);
  const Packed packed(a.shape(), c.shape(), sizeof(T));
  const Buffer left = device.allocate<T>({packed.parts, packed.depth, kPart}),
               right = device.allocate<T>({packed.panels, packed.depth, packed.width});
  device.launch_on(stream, pack_kernel<T>(true), {packed.parts, packed.depth}, a, left);
  device.launch_on(stream, pack_kernel<T>(false), right.shape(), b, right);
  const Shape extent{packed.panels, packed.strips / c.shape()[0], kPanel<T>};
  device.launch_on(stream, matmul_kernel<T>(Product::packed, true), extent, left, right, c);
}

/// f32 or f64 by this device's own kernels.
template <class T>
void multiply(const Device& device, const Stream& stream, const Factors& abc, std::string_view variant) {
  const auto& [a, b, c] = abc;
  const Product form = choose_product(device, describe(a, b, c), c.storage(), variant);
  if (form == Product::packed) return multiply_packed<T>(device, stream, abc);
  const auto [rows, columns] = product_tile(form, c.storage());
  const bool points = form == Product::columns || by_tensor_cores(form);
  Shape extent = c.shape();
  const int r = extent.rank();
  extent[r - 2] = divide_up(extent[r - 2], points ? kMatmulRows : rows);
  if (!points) extent[r - 1] = divide_up(extent[r - 1], columns);
  device.launch_on(stream, matmul_kernel<T>(form, r == 3), extent, a, b, c);
}

}  // namespace

int64_t plain_scratch(Product form, Storage storage, const Shape& a, const Shape& c) {
  return form == Product::packed ? size_of(storage) * Packed(a, c, size_of(storage)).elements() : 0;
}

int64_t plain_scratch(const Device& device, Storage storage, const Shape& a, const Shape& c) {
  return plain_scratch(choose_product(device, {a, c, true, true}, storage, {}), storage, a, c);
}

const variants::Computation& matmul_computation() {
  static const variants::Computation computation(
      {.name = "primitives.matmul",
       .variants = {"columns", "packed", "tiles", "wide", "wide-64", "tensor-64", "tensor-128", "slim",
                    "slim-wide"},
       .axes = {"least_side", "waves"}});
  return computation;
}

template <class T>
const Kernel& pack_kernel(bool rows) {
  static const Kernel of_rows =
                          kernel(kernel_name<T>("matmul.pack_rows"),
                                 [](At<2> at, Grid<T, 3> a, Out<T, 3> parts) { pack_rows<T>(at, a, parts); }),
                      of_columns = kernel(
                          kernel_name<T>("matmul.pack_columns"),
                          [](At<3> at, Grid<T, 3> b, Out<T, 3> panels) { pack_columns<T>(at, b, panels); });
  return rows ? of_rows : of_columns;
}
template const Kernel& pack_kernel<f32>(bool);
template const Kernel& pack_kernel<f64>(bool);

template <class T>
const Kernel& matmul_kernel(Product form, bool batch) {
  static const Kernel packed =
      kernel(kernel_name<T>("matmul.packed"), [](At<3> at, Grid<T, 3> parts, Grid<T, 3> panels, Out<T, 3> c) {
        packed_product<T>(at, parts, panels, c);
      });
  if (form == Product::packed) return packed;
  return batch ? product_kernel<T, 3>(form) : product_kernel<T, 2>(form);
}
template const Kernel& matmul_kernel<f32>(Product, bool);
template const Kernel& matmul_kernel<f64>(Product, bool);

ProductTile product_tile(Product form, Storage storage) {
  if (is_slim(form)) return {SlimTile<f32>::kRows, SlimTile<f32>::kColumns};
  const int side = form == Product::wide ? 2 * kSide * 16 / size_of(storage) : kTile;
  return {side, side};
}

void multiply_plain(const Device& device, const Stream& stream, const Factors& abc,
                    std::string_view variant) {
  if (abc.c.storage() == Storage::f64)
    multiply<f64>(device, stream, abc, variant);
  else
    multiply<f32>(device, stream, abc, variant);
}

std::string plain_product_name(const Device& device, const Factors& abc) {
  const auto& [a, b, c] = abc;
  const Product form = choose_product(device, describe(a, b, c), c.storage(), {});
  const bool batch = c.shape().rank() == 3;
  return c.storage() == Storage::f64 ? matmul_kernel<f64>(form, batch).name()
                                     : matmul_kernel<f32>(form, batch).name();
}

std::string copied_product_name(const Device& device, const Factors& abc) {
  const auto& [a, b, c] = abc;
  const int r = c.shape().rank();
  const bool own = c.storage() == Storage::f32;  // takes the sums itself
  const Matrices m{a.shape(), c.shape(), !own || c.contiguous(),
                   a.shape()[r - 1] % 4 == 0 && b.shape()[r - 1] % 4 == 0 && (!own || in_quads(c))};
  return matmul_kernel<f32>(choose_product(device, m, Storage::f32, {}), r == 3).name();
}

}  // namespace lockstep::primitives
