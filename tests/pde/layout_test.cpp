// Rows of all components, batches, aligned copies: other layouts, the same bits.
#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/error.hpp"
#include "pde/paths.hpp"
#include "pde/problems.hpp"
#include "pde/sixteen_bits.hpp"

namespace lockstep::pde {
namespace {

using testing::devices;
using testing::mesh_of;
using testing::paths;
using testing::random_array;
using testing::random_state;
using testing::upload;

struct LayoutProblem {
  const char* boundary;
  std::array<int64_t, 3> cells;
  bool masked;
  int order;
};

std::vector<LayoutProblem> problems() {
  return {{"periodic", {20, 9, 13}, false, 2},
          {"x=free_slip,y-=clamp,y+=dirichlet_face:0.5,z=no_slip", {21, 13, 12}, true, 2},
          {"y=clamp", {16, 13, 14}, false, 4}};
}

std::vector<float> random_mask(const Mesh& mesh, size_t members) {
  std::mt19937 random(5);
  std::vector<float> mask(size_t(mesh.count()) * members);
  for (float& m : mask) m = float(random() % 3) * 0.5f;
  return mask;
}

TEST(Layout, RowsAreTheSameBits) {
  for (const Device& device : devices())
    for (const LayoutProblem& problem : problems()) {
      const Mesh mesh = mesh_of(problem.cells, problem.boundary, problem.order);
      const size_t n = size_t(mesh.count());
      const auto state = random_state<float>(mesh, 9);
      const Inputs apart =
          upload(device, mesh, state, problem.masked ? random_mask(mesh, 1) : std::vector<float>());
      Inputs rows;
      rows.mask = apart.mask;
      for (size_t l = 0; l < 3; ++l) {
        std::vector<float> all(4 * n);
        for (size_t i = 0; i < n; ++i) {
          all[4 * i] = state.sigma[l][i];
          for (size_t c = 0; c < 3; ++c) all[4 * i + 1 + c] = state.u[l][c][i];
        }
        rows.rows[l] = device.upload(std::span<const float>(all), {int64_t(n), 4});
      }
      const Loss loss(transport(3), mesh);
      for (const LossOptions& way : paths()) {
        const BoundLoss one = loss.bind(device, apart, way), other = loss.bind(device, rows, way);
        one.run();
        other.run();
        EXPECT_EQ(one.loss(), other.loss());
        EXPECT_FALSE(other.gradient("sigma", 0));
        for (int level = -1; level <= 1; ++level) {
          const auto sigma = device.download<float>(one.gradient("sigma", level)),
                     u = device.download<float>(one.gradient("u", level));
          ASSERT_EQ(other.gradient_rows(level).shape(), (Shape{int64_t(n), 4}));
          const auto got = device.download<float>(other.gradient_rows(level));
          for (size_t i = 0; i < n; ++i) {
            ASSERT_EQ(got[4 * i], sigma[i]) << problem.boundary << level << " cell " << i;
            for (size_t c = 0; c < 3; ++c)
              ASSERT_EQ(got[4 * i + 1 + c], u[c * n + i]) << problem.boundary << level;
          }
        }
      }
    }
}

TEST(Layout, MembersOfABatchAreSingleGrids) {
  constexpr int64_t kMembers = 4;  // a power of two: the mean over them rounds nothing
  for (const Device& device : devices())
    for (const LayoutProblem& problem : problems()) {
      const Mesh mesh = mesh_of(problem.cells, problem.boundary, problem.order);
      const size_t n = size_t(mesh.count());
      const auto [nx, ny, nz] = problem.cells;
      const std::vector<float> mask = problem.masked ? random_mask(mesh, kMembers) : std::vector<float>();
      std::vector<Inputs> singles;
      std::array<std::vector<float>, 3> sigma, u;
      for (int64_t m = 0; m < kMembers; ++m) {
        const auto state = random_state<float>(mesh, uint32_t(40 + m));
        const auto first = mask.begin() + std::ptrdiff_t(size_t(m) * n);
        singles.push_back(
            upload(device, mesh, state,
                   problem.masked ? std::vector<float>(first, first + std::ptrdiff_t(n)) : mask));
        for (size_t l = 0; l < 3; ++l) {
          sigma[l].insert(sigma[l].end(), state.sigma[l].begin(), state.sigma[l].end());
          const auto joined = testing::joined(state.u[l]);
          u[l].insert(u[l].end(), joined.begin(), joined.end());
        }
      }
      Inputs batch;
      batch.members = kMembers;
      if (problem.masked) batch.mask = device.upload(std::span<const float>(mask), {kMembers, nz, ny, nx});
      for (size_t l = 0; l < 3; ++l) {
        batch.fields["sigma"][l] = device.upload(std::span<const float>(sigma[l]), {kMembers, nz, ny, nx});
        batch.fields["u"][l] = device.upload(std::span<const float>(u[l]), {kMembers * 3, nz, ny, nx});
      }
      const Loss loss(transport(3), mesh);
      for (const LossOptions& way : paths()) {
        const BoundLoss all = loss.bind(device, batch, way);
        all.run();
        double mean = 0;
        for (int64_t m = 0; m < kMembers; ++m) {
          const BoundLoss one = loss.bind(device, singles[size_t(m)], way);
          one.run();
          mean += one.loss() / kMembers;
          for (const char* field : {"sigma", "u"})
            for (int level = -1; level <= 1; ++level) {
              const auto want = device.download<float>(one.gradient(field, level));
              const auto got = device.download<float>(all.gradient(field, level));
              for (size_t i = 0; i < want.size(); ++i)
                ASSERT_EQ(got[size_t(m) * want.size() + i], want[i] / kMembers)
                    << problem.boundary << " member " << m << " " << field << level << " element " << i;
            }
        }
        EXPECT_NEAR(all.loss(), mean, 1e-13 * mean) << problem.boundary;
      }
    }
}

/// Rows (members * cells, 4) of a batch whose members are given by level as separate arrays.
std::vector<float> rows_of(const std::vector<reference::State<float>>& members, size_t level) {
  std::vector<float> all;
  for (const auto& s : members)
    for (size_t i = 0; i < s.sigma[level].size(); ++i) {
      all.push_back(s.sigma[level][i]);
      for (size_t c = 0; c < 3; ++c) all.push_back(s.u[level][c][i]);
    }
  return all;
}

/// The same members as rows of all components, and as a batch of grids field by field; a direction as rows.
struct Members {
  std::vector<reference::State<float>> states, directions;
  Inputs rows, batch;
  std::map<std::string, std::array<Buffer, 3>> along;

  Members(const Device& device, const Mesh& mesh, size_t count) {
    for (uint32_t m = 0; m < count; ++m) {
      states.push_back(random_state<float>(mesh, 60 + m));
      directions.push_back(random_state<float>(mesh, 70 + m));
    }
    rows.members = batch.members = int64_t(count);
    const auto [nx, ny, nz] = mesh.cells;
    const auto members = int64_t(count);
    for (size_t l = 0; l < 3; ++l) {
      const auto data = rows_of(states, l), direction = rows_of(directions, l);
      const Shape shape{members * mesh.count(), 4};
      rows.rows[l] = device.upload(std::span<const float>(data), shape);
      along[""][l] = device.upload(std::span<const float>(direction), shape);
      std::vector<float> sigma, u;
      for (const auto& s : states) {
        sigma.insert(sigma.end(), s.sigma[l].begin(), s.sigma[l].end());
        for (const auto& c : s.u[l]) u.insert(u.end(), c.begin(), c.end());
      }
      batch.fields["sigma"][l] = device.upload(std::span<const float>(sigma), {members, nz, ny, nx});
      batch.fields["u"][l] = device.upload(std::span<const float>(u), {members * 3, nz, ny, nx});
    }
  }
};

/// Products of all members, on the host but for the gradients.
struct Products {
  std::vector<float> residuals, jv, cotangents;
  FieldBuffers of_rows, of_batch;  // gradients
};

/// v . (J^T c) of the rows is c . (J v).
void expect_transposes(const Device& device, const Members& members, const Products& all,
                       const char* boundary) {
  double left = 0, right = 0, size = 0;
  for (size_t i = 0; i < all.cotangents.size(); ++i) {
    const double product = double(all.cotangents[i]) * all.jv[i];
    left += product, size += std::abs(product);
  }
  for (size_t l = 0; l < 3; ++l) {
    const auto g = device.download<float>(all.of_rows.at("")[l]),
               v = device.download<float>(members.along.at("")[l]);
    for (size_t i = 0; i < g.size(); ++i) right += double(g[i]) * v[i];
  }
  EXPECT_NEAR(left, right, 1e-6 * size) << boundary;
}

/// Member m has the bits that a single grid has.
void expect_member(const Device& device, const Loss& loss, const Mesh& mesh, const Members& members, size_t m,
                   const Products& all, const char* boundary) {
  const auto n = size_t(mesh.count());
  const Inputs one = upload(device, mesh, members.states[m]);
  const auto take = [&](const std::vector<float>& values, size_t k) {  // member m of residual k
    const auto first = values.begin() + std::ptrdiff_t((k * members.states.size() + m) * n);
    return std::vector<float>(first, first + std::ptrdiff_t(n));
  };
  const auto single = device.download<float>(loss.residuals(device, one)),
             single_jv = device.download<float>(
                 loss.jvp(device, one, upload(device, mesh, members.directions[m]).fields));
  std::vector<float> own;
  for (size_t k = 0; k < 4; ++k) {
    const auto part = take(all.cotangents, k), wanted = take(all.residuals, k), tangent = take(all.jv, k);
    own.insert(own.end(), part.begin(), part.end());
    for (size_t i = 0; i < n; ++i) {
      ASSERT_EQ(wanted[i], single[k * n + i]) << boundary << " residual " << k;
      ASSERT_EQ(tangent[i], single_jv[k * n + i]) << boundary << " residual " << k;
    }
  }
  const auto [nx, ny, nz] = mesh.cells;
  const auto want = loss.vjp(device, one, device.upload(std::span<const float>(own), {4, nz, ny, nx}));
  for (size_t l = 0; l < 3; ++l) {
    const auto g = device.download<float>(all.of_rows.at("")[l]),
               sigma = device.download<float>(want.at("sigma")[l]),
               u = device.download<float>(want.at("u")[l]),
               batch_sigma = device.download<float>(all.of_batch.at("sigma")[l]);
    for (size_t i = 0; i < n; ++i) {
      const float* row = &g[4 * (m * n + i)];
      ASSERT_EQ(row[0], sigma[i]) << boundary;
      ASSERT_EQ(batch_sigma[m * n + i], sigma[i]) << boundary;
      for (size_t k = 0; k < 3; ++k) ASSERT_EQ(row[1 + k], u[k * n + i]) << boundary;
    }
  }
}

/// Boundary gradients of rows and batch are the same bits, and the mean of the members'.
void expect_boundary_means(const Device& device, const Loss& loss, const Mesh& mesh, const Members& members) {
  std::vector<double> mean;
  for (const auto& state : members.states) {
    const auto sides = loss.boundary_gradients(device, upload(device, mesh, state));
    mean.resize(sides.size());
    for (size_t k = 0; k < sides.size(); ++k) mean[k] += sides[k].value / double(members.states.size());
  }
  const auto of_rows = loss.boundary_gradients(device, members.rows),
             of_batch = loss.boundary_gradients(device, members.batch);
  ASSERT_EQ(of_rows.size(), mean.size());
  for (size_t k = 0; k < mean.size(); ++k) {
    EXPECT_EQ(of_rows[k].value, of_batch[k].value);
    EXPECT_NEAR(of_rows[k].value, mean[k], 1e-6 * std::abs(mean[k]) + 1e-12);
  }
}

// residuals, vjp, jvp and boundary gradients of rows and batches: the bits of separate single grids, and
// transposes.
TEST(Layout, ProductsOfRowsAndMembersAreThoseOfSingleGrids) {
  constexpr size_t kMembers = 2;
  for (const Device& device : devices())
    for (const LayoutProblem& problem : problems()) {
      const Mesh mesh = mesh_of(problem.cells, problem.boundary, problem.order);
      const Loss loss(transport(3), mesh);
      const Members members(device, mesh, kMembers);
      const Buffer residuals = loss.residuals(device, members.rows);
      ASSERT_EQ(residuals.shape(),
                (Shape{4, int64_t(kMembers) * mesh.cells[2], mesh.cells[1], mesh.cells[0]}));
      std::mt19937 random(4);
      Products all;
      all.residuals = device.download<float>(residuals);
      EXPECT_EQ(device.download<float>(loss.residuals(device, members.batch)), all.residuals);
      all.jv = device.download<float>(loss.jvp(device, members.rows, members.along));
      all.cotangents = random_array<float>(random, all.residuals.size());
      const Buffer cotangents = device.upload(std::span<const float>(all.cotangents), residuals.shape());
      all.of_rows = loss.vjp(device, members.rows, cotangents);
      all.of_batch = loss.vjp(device, members.batch, cotangents);
      expect_transposes(device, members, all, problem.boundary);
      for (size_t m = 0; m < kMembers; ++m)
        expect_member(device, loss, mesh, members, m, all, problem.boundary);
      expect_boundary_means(device, loss, mesh, members);
    }
}

TEST(Layout, BadRowsAndBatchesAreRefused) {
  const Device device = devices().front();
  const Mesh mesh = mesh_of({4, 4, 4}, "clamp");
  const Loss loss(transport(3), mesh);
  const std::vector<float> data(64 * 4, 0.5f);
  Inputs rows;
  for (Buffer& b : rows.rows) b = device.upload(std::span<const float>(data), {64, 4});
  loss.bind(device, rows);
  EXPECT_THROW(loss.jvp(device, rows, {{"sigma", {}}}), InputError);
  EXPECT_THROW(loss.jvp(device, rows, {{"", {Buffer(), device.allocate<float>({64, 3}), Buffer()}}}),
               InputError);
  EXPECT_THROW(loss.vjp(device, rows, device.allocate<float>({4, 4, 4, 3})), InputError);
  Inputs both = rows;
  both.fields["sigma"] = {rows.rows[0], rows.rows[0], rows.rows[0]};
  EXPECT_THROW(loss.bind(device, both), InputError);
  Inputs missing = rows;
  missing.rows[2] = Buffer();
  EXPECT_THROW(loss.bind(device, missing), InputError);
  Inputs flat = rows;
  flat.rows[0] = device.upload(std::span<const float>(data), {4, 64});
  EXPECT_THROW(loss.bind(device, flat), InputError);
  LossOptions some;
  some.wanted = {"u"};
  EXPECT_THROW(loss.bind(device, rows, some), InputError);
  Inputs members = rows;
  members.members = 2;
  EXPECT_THROW(loss.bind(device, members), InputError);
  members.members = 0;
  EXPECT_THROW(loss.bind(device, members), InputError);
}

/// The nearest half of a float within its range, ties to even.
uint16_t half_bits(float v) {
  if (v == 0) return std::signbit(v) ? 0x8000 : 0;
  int exponent = std::max(std::ilogb(v), -14);
  int64_t mantissa = int64_t(std::nearbyint(std::ldexp(std::abs(double(v)), 10 - exponent)));
  if (mantissa == 2048) mantissa = 1024, ++exponent;
  const int64_t bits = mantissa < 1024 ? mantissa : (int64_t(exponent + 15) << 10) + mantissa - 1024;
  return uint16_t(bits | (std::signbit(v) ? 0x8000 : 0));
}

// f16: only the conversion differs from bf16, which subnormal and large gradients pass too.
TEST(Layout, HalvesComputeInFloat) {
  testing::expect_computed_in_float<f16>(
      mesh_of({12, 9, 10}, "y=no_slip"), 40, [](float v) { return std::nearbyint(v * 1024) / 1024; },
      half_bits, half_bits);
}

// Rows of 4 floats let the sweep copy 16 bytes at a time; a window that begins elsewhere does not.
TEST(Layout, UnalignedArraysAreTheSameBits) {
  const Device device = devices().back();
  const Mesh mesh = mesh_of({16, 9, 10}, "periodic");
  Inputs in = upload(device, mesh, random_state<float>(mesh, 2));
  LossOptions options;
  options.path = Path::fused;
  const Loss loss(transport(3), mesh);
  const BoundLoss aligned = loss.bind(device, in, options);
  aligned.run();
  const auto sigma = device.download<float>(in.fields["sigma"][1]);
  const Buffer room = device.allocate(Storage::f32, {mesh.count() + 3});
  const Buffer moved = room.rows(3, mesh.count()).reshape({10, 9, 16});
  device.write(moved, sigma.data(), moved.bytes());
  in.fields["sigma"][1] = moved;
  const BoundLoss unaligned = loss.bind(device, in, options);
  unaligned.run();
  for (int level = -1; level <= 1; ++level)
    EXPECT_EQ(device.download<float>(aligned.gradient("u", level)),
              device.download<float>(unaligned.gradient("u", level)));
}

}  // namespace
}  // namespace lockstep::pde
