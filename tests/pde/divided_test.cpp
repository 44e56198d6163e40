// A loss over ranks: the bits of one device, planes that neighbours refresh, ranks that differ or fall silent.
#include "lockstep/pde/divided.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <mutex>
#include <thread>

#include "core/refusal.hpp"
#include "parallel/transports/transport.hpp"
#include "pde/problems.hpp"

namespace lockstep::pde::testing {
namespace {

using parallel::Group;
using parallel::Range;

/// Messages between ranks arrive late and in another order.
void over_disturbed_ranks(int ranks, const std::function<void(const Group&)>& work) {
  parallel::run_ranks(ranks, {.wait_limit_s = 60}, 33, work);
}

/// Planes [begin, end) of `components` volumes, taken around the end of the grid.
std::vector<float> planes_of(const std::vector<float>& all, const Mesh& mesh, const Range& range) {
  const int64_t plane = mesh.cells[0] * mesh.cells[1], nz = mesh.cells[2],
                components = int64_t(all.size()) / (plane * nz);
  std::vector<float> part;
  for (int64_t c = 0; c < components; ++c)
    for (int64_t z = range.begin; z < range.end; ++z) {
      const auto from = all.begin() + (c * nz + (z % nz + nz) % nz) * plane;
      part.insert(part.end(), from, from + plane);
    }
  return part;
}

/// Arrays of a whole grid by field and level.
struct Fields {
  Mesh mesh;
  std::map<std::string, std::array<std::vector<float>, 3>> levels;
  std::vector<float> mask;
  std::map<std::string, double> parameters = {};
  std::map<std::string, std::vector<float>> profiles = {};
  std::map<std::string, Shape> profile_shapes = {};

  Fields(const Mesh& m, const std::map<std::string, int>& components, bool masked, uint32_t seed) : mesh(m) {
    std::mt19937 random(seed);
    const auto count = size_t(m.count());
    for (const auto& [name, number] : components)
      for (auto& level : levels[name]) level = random_array<float>(random, size_t(number) * count);
    for (size_t k = 0; masked && k < count; ++k) mask.push_back(float(random() % 3));
  }
  Inputs on(const Device& device, const Range& range) const {
    const auto upload = [&](const std::vector<float>& all) {
      const std::vector<float> part = planes_of(all, mesh, range);
      const int64_t volume = range.size() * mesh.cells[1] * mesh.cells[0],
                    number = int64_t(part.size()) / volume;
      const Shape scalar{range.size(), mesh.cells[1], mesh.cells[0]},
          vector{number, range.size(), mesh.cells[1], mesh.cells[0]};
      return device.upload(std::span<const float>(part), number == 1 ? scalar : vector);
    };
    Inputs inputs;
    for (const auto& [name, arrays] : levels)
      for (size_t l = 0; l < 3; ++l) inputs.fields[name][l] = upload(arrays[l]);
    if (!mask.empty()) inputs.mask = upload(mask);
    inputs.parameters = parameters;
    for (const auto& [name, numbers] : profiles)
      inputs.profiles[name] = device.upload(std::span<const float>(numbers), profile_shapes.at(name));
    return inputs;
  }
};

/// Terms of a loss, and its gradients by field and level.
struct Found {
  std::vector<double> terms;
  std::map<std::pair<std::string, int>, std::vector<float>> gradients;
};

Found by_one(const Device& device, const System& system, const Fields& fields, const LossOptions& options) {
  const BoundLoss bound =
      Loss(system, fields.mesh).bind(device, fields.on(device, {0, fields.mesh.cells[2]}), options);
  bound.run();
  Found found{bound.terms(), {}};
  for (const auto& [name, arrays] : fields.levels)
    for (int level = -1; level <= 1; ++level)
      if (const Buffer g = bound.gradient(name, level))
        found.gradients[{name, level}] = device.download<float>(g);
  return found;
}

/// Arrays that a rank binds.
enum class Bound : uint8_t { held_planes, own_planes };

/// The same over ranks; gradients assembled from the own planes of each.
Found by_ranks(int ranks, const Device& device, const System& system, const Fields& fields,
               const LossOptions& options, Bound arrays = Bound::held_planes) {
  Found found;
  std::mutex mutex;
  const int64_t nz = fields.mesh.cells[2], plane = fields.mesh.cells[0] * fields.mesh.cells[1];
  over_disturbed_ranks(ranks, [&](const Group& group) {
    const DividedLoss loss(system, fields.mesh, group);
    std::vector<double> terms;
    std::function<Buffer(const std::string&, int)> gradient;
    if (arrays == Bound::own_planes) {
      const BoundPlanes bound = loss.bind_planes(device, fields.on(device, loss.own()), options);
      bound.run();
      bound.run();
      terms = bound.terms();
      gradient = [bound](const std::string& name, int level) { return bound.gradient(name, level); };
    } else {
      const BoundLoss bound = loss.bind(device, fields.on(device, loss.held()), options);
      bound.run();
      terms = loss.terms(bound);
      EXPECT_THROW(bound.terms(), UnsupportedError);
      gradient = [bound, &loss](const std::string& name, int level) {
        const Buffer g = bound.gradient(name, level);
        return g ? loss.own_planes(g) : g;
      };
    }
    const std::lock_guard lock(mutex);
    EXPECT_TRUE(found.terms.empty() || found.terms == terms) << "ranks have other terms";
    found.terms = terms;
    const Range own = loss.own();
    for (const auto& [name, levels] : fields.levels)
      for (int level = -1; level <= 1; ++level) {
        const Buffer g = gradient(name, level);
        if (!g) continue;
        const Array mine = device.download(g).packed();
        std::vector<float>& all = found.gradients[{name, level}];
        all.resize(levels[0].size());
        const int64_t components = int64_t(all.size()) / (plane * nz);
        for (int64_t c = 0; c < components; ++c)
          std::copy_n(mine.as<float>().begin() + c * own.size() * plane, own.size() * plane,
                      all.begin() + (c * nz + own.begin) * plane);
      }
  });
  return found;
}

void expect_same_bits(const Found& one, const Found& several, const std::string& what) {
  EXPECT_EQ(one.terms, several.terms) << what;
  ASSERT_EQ(one.gradients.size(), several.gradients.size()) << what;
  for (const auto& [key, values] : one.gradients) {
    const std::vector<float>& others = several.gradients.at(key);
    ASSERT_EQ(values.size(), others.size()) << what;
    size_t differ = 0;
    for (size_t k = 0; k < values.size(); ++k)
      differ += std::memcmp(&values[k], &others[k], sizeof(float)) != 0;
    EXPECT_EQ(differ, 0u) << what << ": gradient of " << key.first << " at level " << key.second;
  }
}

TransportOptions all_terms() {
  TransportOptions terms;
  terms.viscosity = 0.03;
  terms.pressure = terms.forcing = true;
  terms.weight_divergence = 0.7;
  terms.weight_speed = 0.2;
  return terms;
}
const std::map<std::string, int> kTransport{{"sigma", 1}, {"u", 3}, {"p", 1}, {"force", 3}};

LossOptions path_of(Path path, int64_t slab = 0) {
  LossOptions options;
  options.path = path;
  options.slab = slab;
  if (path == Path::fused) options.tile_x = 16, options.tile_y = 2, options.tile_rows = 2;
  return options;
}

/// 21 planes are five blocks of four and one of one: no number of ranks above 1 divides them evenly.
constexpr std::array<int64_t, 3> kCells{12, 10, 21};

void check_path(const LossOptions& options, const std::string& boundary, int order, bool masked) {
  const Device device = Device::open("cpu");
  const System system = transport(3, all_terms());
  const Fields fields(mesh_of(kCells, boundary, order), kTransport, masked, 7);
  LossOptions alone = options;
  if (options.path == Path::fused) alone.chunk = 4;  // planes of a block, whose sums are its own
  const Found one = by_one(device, system, fields, alone);
  const std::string what = std::string(name(options.path)) + " " + boundary;
  for (int ranks : {1, 2, 3, 4})
    expect_same_bits(one, by_ranks(ranks, device, system, fields, options),
                     what + ", " + std::to_string(ranks) + " ranks");
  for (int ranks : {1, 4})
    expect_same_bits(one, by_ranks(ranks, device, system, fields, options, Bound::own_planes),
                     what + ", own planes of " + std::to_string(ranks) + " ranks");
}

TEST(Divided, TwoKernelsHaveTheBitsOfOneDevice) {
  check_path(path_of(Path::two_kernel), "periodic", 2, false);
  check_path(path_of(Path::two_kernel, 3), "z=one_sided2,x=no_slip", 4, true);
  check_path(path_of(Path::two_kernel, 2), "z=periodic,y=clamp", 8, false);
  check_path(path_of(Path::two_kernel), "z-=node_mirror,z+=dirichlet_face:0.7", 8, true);
}

TEST(Divided, SweepsHaveTheBitsOfOneDevice) {
  check_path(path_of(Path::two_sweep), "z=free_slip", 6, false);
  check_path(path_of(Path::two_sweep), "periodic", 8, true);
}

TEST(Divided, FusedBlocksHaveTheBitsOfOneDevice) {
  check_path(path_of(Path::fused), "periodic", 2, true);
  check_path(path_of(Path::fused), "z=no_slip,x=clamp", 2, false);
  check_path(path_of(Path::fused), "z=clamp", 4, false);
}

/// Fields with boundaries of their own, and sides whose values are a number, a parameter and profiles.
struct Sides {
  System system{3};
  Fields fields;

  explicit Sides(int order)
      : fields(mesh_of(kCells, "x=clamp,y=clamp,z=clamp", order), {{"a", 1}, {"b", 2}}, true, 3) {
    const Field a = system.field(
        "a", 1,
        BoundaryConditions::parse(
            "z-=dirichlet_face:@floor,z+=ghost:@top,x-=dirichlet_face:@wall,x+=clamp,y-=ghost:0.4,y+=clamp"));
    const Field b = system.field("b", 2, BoundaryConditions::parse("z=one_sided1,x=clamp,y=clamp"));
    system.profile("floor");
    system.profile("wall");
    const Value top = system.parameter("top");  // of a side and of a residual
    // The way back needs differences of differences.
    system.residual("steep", system.d(a, 2) * system.d(a, 2) + system.dt(b, 1) * system.d(b, 2, 0));
    system.residual("smooth", top * system.laplacian(a) - system.upwind(system.at(a), b, 2, 1), 0.5);
    std::mt19937 random(5);
    fields.parameters["top"] = 0.3;
    fields.profile_shapes = {{"floor", {kCells[1], kCells[0]}}, {"wall", {kCells[2], kCells[1]}}};
    for (const auto& [name, shape] : fields.profile_shapes)
      fields.profiles[name] = random_array<float>(random, size_t(shape.elements()));
  }
};

TEST(Divided, SystemsOfAnyKind) {
  const Device device = Device::open("cpu");
  const Sides sides(4);
  LossOptions options = path_of(Path::two_kernel, 3);
  const Found one = by_one(device, sides.system, sides.fields, options);
  for (int ranks : {2, 4})
    expect_same_bits(one, by_ranks(ranks, device, sides.system, sides.fields, options),
                     std::to_string(ranks) + " ranks");
}

TEST(Divided, DerivativesByParametersAndSides) {
  const Device device = Device::open("cpu");
  for (int order : {2, 8}) {
    const Sides sides(order);
    const auto expected = Loss(sides.system, sides.fields.mesh)
                              .boundary_gradients(device, sides.fields.on(device, {0, kCells[2]}));
    const Loss::Numbers numbers = Loss(sides.system, sides.fields.mesh)
                                      .number_gradients(device, sides.fields.on(device, {0, kCells[2]}));
    ASSERT_EQ(expected.size(), 4u);
    for (int ranks : {1, 2, 3, 4})
      over_disturbed_ranks(ranks, [&](const Group& group) {
        const DividedLoss loss(sides.system, sides.fields.mesh, group);
        const auto found =
            ranks == 3
                ? loss.boundary_gradients_of_planes(device, sides.fields.on(device, loss.own()))
                : loss.boundary_gradients(loss.side_cells(device, sides.fields.on(device, loss.held())));
        const Loss::Numbers mine =
            loss.number_gradients_of_planes(device, sides.fields.on(device, loss.own()));
        EXPECT_EQ(mine.parameters, numbers.parameters) << "order " << order << ", " << ranks << " ranks";
        EXPECT_EQ(mine.profiles, numbers.profiles);
        ASSERT_EQ(found.size(), expected.size());
        for (size_t k = 0; k < found.size(); ++k) {
          EXPECT_NE(expected[k].value, 0);
          EXPECT_EQ(found[k].value, expected[k].value) << "order " << order << ", " << ranks << " ranks";
          EXPECT_EQ(found[k].cells, expected[k].cells) << found[k].parameter;
          EXPECT_EQ(std::tie(found[k].axis, found[k].end, found[k].parameter),
                    std::tie(expected[k].axis, expected[k].end, expected[k].parameter));
        }
      });
  }
}

TEST(Divided, Trajectories) {
  const Device device = Device::open("cpu");
  constexpr int64_t kLevels = 5;
  for (const char* boundary : {"periodic", "z-=one_sided2,z+=clamp"}) {
    const Mesh mesh = mesh_of(kCells, boundary, 4);
    const System system = transport(3, {});
    std::mt19937 random(9);
    std::map<std::string, std::vector<std::vector<float>>> all;
    for (int64_t n = 0; n < kLevels; ++n) {
      all["sigma"].push_back(random_array<float>(random, size_t(mesh.count())));
      all["u"].push_back(random_array<float>(random, 3 * size_t(mesh.count())));
    }
    const auto inputs_of = [&](const Range& range) {
      TrajectoryInputs inputs;
      for (const auto& [name, list] : all)
        for (const std::vector<float>& level : list) {
          const std::vector<float> part = planes_of(level, mesh, range);
          const Shape scalar{range.size(), kCells[1], kCells[0]},
              vector{3, range.size(), kCells[1], kCells[0]};
          inputs.fields[name].push_back(
              device.upload(std::span<const float>(part), name == "u" ? vector : scalar));
        }
      return inputs;
    };
    LossOptions options = path_of(Path::two_kernel, 3);
    const BoundLoss one = Loss(system, mesh).bind_trajectory(device, inputs_of({0, kCells[2]}), options);
    one.run();
    const std::vector<double> terms = one.terms();
    for (int ranks : {3})
      over_disturbed_ranks(ranks, [&](const Group& group) {
        const DividedLoss loss(system, mesh, group);
        const BoundLoss bound = loss.bind_trajectory(device, inputs_of(loss.held()), options);
        bound.run();
        EXPECT_EQ(loss.terms(bound), terms) << boundary << ", " << ranks << " ranks";
        for (int n = 0; n < kLevels; ++n) {
          const Array mine = device.download(loss.own_planes(bound.gradient("u", n))).packed();
          const std::vector<float> expected =
              planes_of(device.download<float>(one.gradient("u", n)), mesh, loss.own());
          EXPECT_TRUE(std::ranges::equal(mine.as<float>(), expected)) << boundary << ", level " << n;
        }
      });
  }
}

/// The planes of others that a rank holds follow them, around the end of a periodic axis too.
TEST(Divided, RefreshedPlanesAreThoseOfTheirOwners) {
  const Device device = Device::open("cpu");
  for (const char* boundary : {"periodic", "clamp"})
    for (int ranks : {1, 2, 3, 4})
      over_disturbed_ranks(ranks, [&](const Group& group) {
        const Mesh mesh = mesh_of({6, 5, 13}, boundary, 8);
        const DividedLoss loss(transport(3, {}), mesh, group);
        std::mt19937 random(1);
        const std::vector<float> all = random_array<float>(random, 3 * size_t(mesh.count()));
        std::vector<float> held = planes_of(all, mesh, loss.held());
        const int64_t plane = 30, size = loss.held().size(), first = loss.own().begin - loss.held().begin;
        for (int64_t c = 0; c < 3; ++c)  // only the own planes are right
          for (int64_t z = 0; z < size; ++z)
            if (z < first || z >= first + loss.own().size())
              std::fill_n(held.begin() + (c * size + z) * plane, plane, -7.0f);
        const Buffer array = device.upload(std::span<const float>(held), {3, size, 5, 6});
        loss.refresh(device, std::array{array});
        EXPECT_EQ(device.download<float>(array), planes_of(all, mesh, loss.held()))
            << boundary << ", " << ranks;
      });
}

TEST(Divided, RanksThatDifferOrFallSilentAreNamed) {
  const Device device = Device::open("cpu");
  const System system = transport(3, {});
  const Fields fields(mesh_of(kCells, "periodic"), {{"sigma", 1}, {"u", 3}}, false, 2);
  const auto message = [&](double limit_s, const std::function<void(const Group&)>& work) {
    return test::refusal([&] { parallel::run_ranks(3, {.wait_limit_s = limit_s}, 33, work); });
  };
  const auto evaluate = [&](const Group& group, const LossOptions& options) {
    const DividedLoss loss(system, fields.mesh, group);
    const BoundLoss bound = loss.bind(device, fields.on(device, loss.held()), options);
    bound.run();
    loss.terms(bound);
  };
  const auto expect_in = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  expect_in(message(60,
                    [&](const Group& group) {
                      evaluate(group, path_of(group.rank() == 2 ? Path::fused : Path::two_kernel));
                    }),
            "sums of the loss (devices or paths) of rank 2 differ");
  expect_in(message(1,
                    [&](const Group& group) {
                      if (group.rank() == 1) return std::this_thread::sleep_for(std::chrono::seconds(4));
                      DividedLoss(system, fields.mesh, group).gather({1, {1.0}, {1.0}, "a plane"});
                    }),
            "rank 1 has not responded for 1 s");
  expect_in(message(60,
                    [&](const Group& group) {
                      if (group.rank() == 1) throw InputError("no disk", "test", "one");
                      evaluate(group, path_of(Path::two_kernel));
                    }),
            "no disk");
}

/// Every rank throws, so none waits for another.
TEST(Divided, RanksAgreeBeforeTheyBind) {
  const Device device = Device::open("cpu");
  const System system = transport(3, {});
  const Fields fields(mesh_of(kCells, "periodic"), {{"sigma", 1}, {"u", 3}}, false, 2);
  const auto said_by_others = [&](const std::function<BoundPlanes(const Group&, bool odd)>& bind) {
    std::string said;
    EXPECT_THROW(parallel::run_ranks(3, {.wait_limit_s = 60},
                                     [&](const Group& group) {
                                       try {
                                         bind(group, group.rank() == 1);
                                       } catch (const parallel::GroupError& e) {
                                         EXPECT_TRUE(e.everywhere());
                                         if (group.rank() == 2) said = e.what();
                                         throw;
                                       }
                                     }),
                 InputError);
    return said;
  };
  const auto on = [&](const DividedLoss& loss) { return fields.on(device, loss.own()); };
  const auto starts = [](const std::string& text, const char* with) {
    EXPECT_TRUE(text.starts_with(with)) << text;
  };
  starts(said_by_others([&](const Group& group, bool odd) {
           const DividedLoss loss(system, fields.mesh, group);
           return loss.bind_planes(device, odd ? fields.on(device, loss.held()) : on(loss));
         }),
         "rank 1 failed: field sigma at level -1 of shape (");
  starts(said_by_others([&](const Group& group, bool odd) {
           const DividedLoss loss(system, fields.mesh, group);
           LossOptions options;
           options.gradients = odd ? Gradients::t1 : Gradients::all;
           return loss.bind_planes(device, on(loss), options);
         }),
         "options and parameters of rank 1 differ from those of rank 0");
  starts(said_by_others([&](const Group& group, bool odd) {
           const DividedLoss loss(transport(3, {.upwind = odd}), fields.mesh, group);
           return loss.bind_planes(device, on(loss));
         }),
         "systems of rank 1 differ");
}

TEST(Divided, WhatRanksCannotDivideIsRefused) {
  const auto with = [](const System& system, const Mesh& mesh, int ranks) {
    parallel::run_ranks(ranks, {}, [&](const Group& group) { const DividedLoss loss(system, mesh, group); });
  };
  EXPECT_NO_THROW(with(transport(3, {}), mesh_of({4, 4, 13}, "clamp"), 4));
  EXPECT_THROW(with(transport(3, {}), mesh_of({4, 4, 12}, "clamp"), 4), parallel::GroupError);
  EXPECT_THROW(with(transport(2, {}), mesh_of({16, 16, 1}, "clamp"), 2), UnsupportedError);
}

}  // namespace
}  // namespace lockstep::pde::testing
