// Trajectories: sweeps over several levels, slabs, rows, batches and 16-bit storage; the same bits, and the
// sums of single losses.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "lockstep/error.hpp"
#include "pde/fused/levels.hpp"
#include "pde/problems.hpp"

namespace lockstep::pde {
namespace {

using testing::devices;
using testing::mesh_of;
using testing::random_array;

/// Random levels of sigma and u; values that 8 bits of mantissa hold where `coarse`.
struct Levels {
  std::vector<std::vector<float>> sigma, u;

  Levels(const Mesh& mesh, int64_t levels, uint32_t seed, bool coarse = false) {
    std::mt19937 random(seed);
    const size_t n = size_t(mesh.count());
    for (int64_t k = 0; k < levels; ++k) {
      sigma.push_back(random_array<float>(random, n));
      u.push_back(random_array<float>(random, 3 * n));
      for (auto* list : {&sigma.back(), &u.back()})
        for (float& v : *list)
          if (coarse) v = std::nearbyint(v * 64) / 64;
    }
  }
};

TrajectoryInputs upload(const Device& device, const Mesh& mesh, const Levels& levels) {
  const auto [nx, ny, nz] = mesh.cells;
  TrajectoryInputs in;
  for (size_t n = 0; n < levels.sigma.size(); ++n) {
    in.fields["sigma"].push_back(device.upload(std::span<const float>(levels.sigma[n]), {nz, ny, nx}));
    in.fields["u"].push_back(device.upload(std::span<const float>(levels.u[n]), {3, nz, ny, nx}));
  }
  return in;
}

/// All gradients, by field and then by level.
std::vector<float> gradients(const Device& device, const BoundLoss& bound, int64_t levels) {
  std::vector<float> all;
  for (const char* field : {"sigma", "u"})
    for (int64_t n = 0; n < levels; ++n) {
      const auto g = device.download<float>(bound.gradient(field, int(n)));
      all.insert(all.end(), g.begin(), g.end());
    }
  return all;
}

LossOptions sweep(int levels, int x = 8, int y = 4, int rows = 2, int chunk = 5) {
  LossOptions o;
  o.path = Path::fused;
  o.levels = levels;
  o.tile_x = x, o.tile_y = y, o.tile_rows = rows, o.chunk = chunk, o.groups = 1;
  return o;
}
LossOptions slabs(int64_t slab) {
  LossOptions o;
  o.path = Path::two_kernel;
  o.slab = slab;
  return o;
}

struct TrajectoryProblem {
  const char* boundary;
  int order;
  bool masked;
};

// The order of sums is the same for every number of levels a sweep takes; the last sweep takes what is left.
TEST(Trajectory, SweepsOfAnyLevelsAreTheBitsOfSlabs) {
  for (const Device& device : devices())
    for (const TrajectoryProblem& p : {TrajectoryProblem{"periodic", 2, false},
                                       TrajectoryProblem{"x=clamp,y=no_slip,z=free_slip", 2, true},
                                       TrajectoryProblem{"x=dirichlet_face:0.3,z=ghost:1", 2, true},
                                       TrajectoryProblem{"z=clamp", 4, true}}) {
      const Mesh mesh = mesh_of({11, 10, 12}, p.boundary, p.order);
      const Loss loss(transport(3), mesh);
      for (int64_t levels : {3, 7}) {
        TrajectoryInputs in = upload(device, mesh, Levels(mesh, levels, 5));
        if (p.masked) {
          std::vector<float> mask(size_t(mesh.count()));
          for (size_t i = 0; i < mask.size(); ++i) mask[i] = float(i % 3) * 0.5f;
          in.mask = device.upload(std::span<const float>(mask), {12, 10, 11});
        }
        const BoundLoss slab = loss.bind_trajectory(device, in, slabs(5));
        slab.run();
        const std::vector<float> want = gradients(device, slab, levels);
        for (int at_once : {1, 2, 3, 5}) {
          if ((levels == 3 && at_once > 1) || (p.masked && at_once == 2)) continue;
          const bool large = at_once > 4 - p.order / 2;
          if (large && (device.info().kind == DeviceKind::interp || p.masked)) continue;
          const BoundLoss swept = loss.bind_trajectory(
              device, in, p.order > 2 ? sweep(std::min(at_once, 2), 8, 2, 1) : sweep(at_once));
          ASSERT_EQ(swept.path(), Path::fused);
          swept.run();
          EXPECT_NEAR(swept.loss(), slab.loss(), 1e-12 * slab.loss());
          EXPECT_EQ(gradients(device, swept, levels), want)
              << p.boundary << " order " << p.order << ", " << levels << " levels, " << at_once << " at once";
          swept.run();  // nothing of a run is left in what sweeps carry
          EXPECT_EQ(gradients(device, swept, levels), want);
        }
      }
    }
}

// In f32, level by level: the spatial part, what the residual before gives, what the one after gives.
TEST(Trajectory, IsTheSumOfSingleLossesInThisOrder) {
  const Device device = devices().back();
  const Mesh mesh = mesh_of({9, 8, 10}, "x=clamp");
  const Loss loss(transport(3), mesh);
  constexpr int64_t kLevels = 6;
  const TrajectoryInputs in = upload(device, mesh, Levels(mesh, kLevels, 8));
  const BoundLoss all = loss.bind_trajectory(device, in, sweep(3));
  all.run();
  std::vector<BoundLoss> single;
  double value = 0;
  for (int64_t n = 1; n < kLevels - 1; ++n) {
    Inputs one;
    for (const auto& [name, list] : in.fields)
      for (int l = -1; l <= 1; ++l) one.fields[name][size_t(l + 1)] = list[size_t(n + l)];
    single.push_back(loss.bind(device, one));
    single.back().run();
    value += single.back().loss();
  }
  EXPECT_NEAR(all.loss(), value, 1e-12 * value);
  for (const char* field : {"sigma", "u"})
    for (int64_t n = 0; n < kLevels; ++n) {
      std::vector<float> sum(device.download<float>(all.gradient(field, int(n))).size(), 0.0f);
      for (int64_t centre : {n, n - 1, n + 1}) {
        if (centre < 1 || centre > kLevels - 2) continue;
        const auto part = device.download<float>(single[size_t(centre - 1)].gradient(field, int(n - centre)));
        for (size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
      }
      EXPECT_EQ(device.download<float>(all.gradient(field, int(n))), sum) << field << " level " << n;
    }
}

// Users' systems: fields without a time derivative, one-sided time differences, second time derivatives.
TEST(Trajectory, OtherSystemsSweepToo) {
  System flow(3);
  const Field t = flow.field("t"), p = flow.field("p"), w = flow.vector("w");
  const Value nu = flow.parameter("nu");
  flow.residual("heat", flow.dt_forward(t) - nu * flow.laplacian(t) + flow.advect(w, t));
  flow.residual("wave", flow.dtt(p) - flow.laplacian(p) + 3 * flow.at(p, 0, 0) - 3 * flow.at(p, 0, -1), 0.5);
  flow.residual("divergence", flow.div(w));
  for (const Device& device : devices())
    for (const char* b : {"periodic", "y=clamp,z=clamp"}) {
      const Mesh mesh = mesh_of({10, 9, 11}, b);
      const Loss loss(flow, mesh);
      constexpr int64_t kLevels = 6;
      TrajectoryInputs in;
      in.parameters["nu"] = 0.3;
      std::mt19937 random(11);
      for (const char* name : {"t", "p", "w"})
        for (int64_t n = 0; n < kLevels; ++n) {
          const int64_t c = *name == 'w' ? 3 : 1;
          const auto v = random_array<float>(random, size_t(c * mesh.count()));
          in.fields[name].push_back(device.upload(std::span<const float>(v), {c, 11, 9, 10}));
        }
      for (const std::vector<std::string>& wanted :
           {std::vector<std::string>{}, std::vector<std::string>{"w"}, std::vector<std::string>{"t", "p"}}) {
        std::vector<BoundLoss> ways;
        std::vector<LossOptions> compared{slabs(4), sweep(2)};
        if (wanted.empty()) compared.insert(compared.end(), {sweep(1), sweep(3, 8, 2, 1)});
        for (LossOptions o : compared) {
          o.wanted = wanted;
          ways.push_back(loss.bind_trajectory(device, in, o));
          ways.back().run();
        }
        for (const char* name : {"t", "p", "w"})
          for (int64_t n = 0; n < kLevels; ++n)
            for (size_t k = 0; k < ways.size(); ++k) {
              const Buffer want = ways[0].gradient(name, int(n)), got = ways[k].gradient(name, int(n));
              ASSERT_EQ(bool(got),
                        wanted.empty() || std::find(wanted.begin(), wanted.end(), name) != wanted.end());
              if (!got) continue;
              EXPECT_EQ(device.download<float>(got), device.download<float>(want))
                  << b << " field " << name << " level " << n << " way " << k;
            }
        for (const BoundLoss& way : ways)
          for (size_t k = 0; k < way.terms().size(); ++k)
            EXPECT_NEAR(way.terms()[k], ways[0].terms()[k], 1e-12 * ways[0].loss());
      }
    }
}

std::vector<LossOptions> parts_of_trajectories() {
  return {slabs(0), slabs(3), sweep(2), sweep(3, 16, 2, 2, 4)};
}

TEST(Trajectory, RowsAreTheSameBits) {
  constexpr int64_t kLevels = 5;
  for (const Device& device : devices()) {
    const Mesh mesh = mesh_of({13, 10, 11}, "x=free_slip,z=clamp");
    const size_t n = size_t(mesh.count());
    const Levels levels(mesh, kLevels, 3);
    const TrajectoryInputs apart = upload(device, mesh, levels);
    TrajectoryInputs rows;
    for (size_t l = 0; l < size_t(kLevels); ++l) {
      std::vector<float> all(4 * n);
      for (size_t i = 0; i < n; ++i) {
        all[4 * i] = levels.sigma[l][i];
        for (size_t c = 0; c < 3; ++c) all[4 * i + 1 + c] = levels.u[l][c * n + i];
      }
      rows.rows.push_back(device.upload(std::span<const float>(all), {int64_t(n), 4}));
    }
    const Loss loss(transport(3), mesh);
    for (const LossOptions& way : parts_of_trajectories()) {
      const BoundLoss one = loss.bind_trajectory(device, apart, way),
                      other = loss.bind_trajectory(device, rows, way);
      one.run();
      other.run();
      EXPECT_EQ(one.loss(), other.loss());
      for (int l = 0; l < int(kLevels); ++l) {
        const auto sigma = device.download<float>(one.gradient("sigma", l)),
                   u = device.download<float>(one.gradient("u", l));
        ASSERT_EQ(other.gradient_rows(l).shape(), (Shape{int64_t(n), 4}));
        const auto got = device.download<float>(other.gradient_rows(l));
        for (size_t i = 0; i < n; ++i) {
          ASSERT_EQ(got[4 * i], sigma[i]) << "level " << l;
          for (size_t c = 0; c < 3; ++c) ASSERT_EQ(got[4 * i + 1 + c], u[c * n + i]) << "level " << l;
        }
      }
    }
  }
}

TEST(Trajectory, MembersAreSingleGrids) {
  constexpr int64_t kLevels = 4, kMembers = 2;  // a power of two: the mean rounds nothing
  for (const Device& device : devices()) {
    const Mesh mesh = mesh_of({12, 9, 10}, "y=no_slip");
    const auto [nx, ny, nz] = mesh.cells;
    std::vector<Levels> data;
    for (uint32_t m = 0; m < kMembers; ++m) data.emplace_back(mesh, kLevels, 30 + m);
    TrajectoryInputs batch;
    batch.members = kMembers;
    for (size_t l = 0; l < size_t(kLevels); ++l) {
      std::vector<float> sigma, u;
      for (const Levels& one : data) {
        sigma.insert(sigma.end(), one.sigma[l].begin(), one.sigma[l].end());
        u.insert(u.end(), one.u[l].begin(), one.u[l].end());
      }
      batch.fields["sigma"].push_back(device.upload(std::span<const float>(sigma), {kMembers, nz, ny, nx}));
      batch.fields["u"].push_back(device.upload(std::span<const float>(u), {kMembers * 3, nz, ny, nx}));
    }
    const Loss loss(transport(3), mesh);
    for (const LossOptions& way : parts_of_trajectories()) {
      const BoundLoss all = loss.bind_trajectory(device, batch, way);
      all.run();
      double mean = 0;
      for (size_t m = 0; m < size_t(kMembers); ++m) {
        const BoundLoss one = loss.bind_trajectory(device, upload(device, mesh, data[m]), way);
        one.run();
        mean += one.loss() / double(kMembers);
        for (const char* field : {"sigma", "u"})
          for (int l = 0; l < int(kLevels); ++l) {
            const auto want = device.download<float>(one.gradient(field, l)),
                       got = device.download<float>(all.gradient(field, l));
            for (size_t i = 0; i < want.size(); ++i)
              ASSERT_EQ(got[m * want.size() + i], want[i] / float(kMembers)) << field << l << " member " << m;
          }
      }
      EXPECT_NEAR(all.loss(), mean, 1e-12 * mean);
    }
  }
}

// Sweeps carry f32: a gradient of 16-bit storage is rounded once, whichever way it takes.
TEST(Trajectory, SixteenBitStorageRoundsOnce) {
  const auto rounded = [](float v) {
    const uint32_t bits = std::bit_cast<uint32_t>(v);
    return uint16_t((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
  };
  constexpr int64_t kLevels = 5;
  for (const Device& device : devices()) {
    const Mesh mesh = mesh_of({12, 9, 10}, "x=clamp");
    const TrajectoryInputs wide = upload(device, mesh, Levels(mesh, kLevels, 7, true));
    TrajectoryInputs half;
    for (const auto& [name, list] : wide.fields)
      for (const Buffer& level : list) {
        std::vector<bf16> values;
        for (float v : device.download<float>(level)) values.push_back(bf16{rounded(v)});
        half.fields[name].push_back(device.upload(std::span<const bf16>(values), level.shape()));
      }
    const Loss loss(transport(3), mesh);
    for (const LossOptions& way : parts_of_trajectories()) {
      const BoundLoss a = loss.bind_trajectory(device, wide, way),
                      b = loss.bind_trajectory(device, half, way);
      a.run();
      b.run();
      EXPECT_EQ(a.loss(), b.loss());
      for (const char* field : {"sigma", "u"})
        for (int l = 0; l < int(kLevels); ++l) {
          const auto exact = device.download<float>(a.gradient(field, l));
          const auto got = device.download<bf16>(b.gradient(field, l));
          for (size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i].bits, rounded(exact[i])) << field << l;
        }
    }
  }
}

TEST(Trajectory, BadDataIsRefused) {
  const Device device = devices().front();
  const Mesh mesh = mesh_of({8, 8, 8}, "clamp");
  const Loss loss(transport(3), mesh);
  const TrajectoryInputs good = upload(device, mesh, Levels(mesh, 4, 1));
  EXPECT_NO_THROW(loss.bind_trajectory(device, good));
  const auto bad = [&](auto change) {
    TrajectoryInputs in = good;
    change(in);
    EXPECT_THROW(loss.bind_trajectory(device, in), InputError);
  };
  bad([](TrajectoryInputs& in) { in.fields["u"].pop_back(); });
  bad([](TrajectoryInputs& in) {
    for (auto& [name, list] : in.fields) list.resize(2);
  });
  bad([](TrajectoryInputs& in) { in.fields.clear(); });
  bad([](TrajectoryInputs& in) { in.fields["u"][3] = Buffer(); });
  bad([&](TrajectoryInputs& in) { in.fields["sigma"][3] = device.allocate<float>({8, 8, 7}); });
  bad([&](TrajectoryInputs& in) { in.fields["sigma"][3] = device.allocate<double>({8, 8, 8}); });
  bad([](TrajectoryInputs& in) { in.members = 2; });
  bad([](TrajectoryInputs& in) { in.seed = 0; });
  bad([&](TrajectoryInputs& in) { in.rows.assign(4, device.allocate<float>({512, 4})); });
  bad([&](TrajectoryInputs& in) {
    in.fields.clear();
    in.rows.assign(4, device.allocate<float>({512, 4}));
    in.rows[3] = device.allocate<float>({512, 3});
  });
  System squared(3);
  const Field f = squared.field("f");
  squared.residual("r", squared.dt(f) * squared.dt(f) - squared.laplacian(f));
  TrajectoryInputs in;
  in.fields["f"] = good.fields.at("sigma");
  EXPECT_THROW(Loss(squared, mesh).bind_trajectory(device, in), UnsupportedError);
  LossOptions huge = sweep(40, 32, 16, 2);
  EXPECT_THROW(loss.bind_trajectory(device, upload(device, mesh, Levels(mesh, 50, 1)), huge),
               UnsupportedError);
}

}  // namespace
}  // namespace lockstep::pde
