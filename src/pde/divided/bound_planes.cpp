// A divided loss on arrays of the own planes: copies of them among the held ones, and what all ranks have to agree on.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <exception>
#include <optional>

#include "core/hash.hpp"
#include "lockstep/pde/divided.hpp"
#include "parallel/transports/transport.hpp"
#include "pde/divided/joined_rows.hpp"
#include "pde/kernels/boundary_gradient.hpp"
#include "pde/language/checked.hpp"

namespace lockstep::pde {

/// A rank's arrays of own planes, and those of the held planes that the loss is computed on.
struct PlaneBinding {
  PlaneBinding(const DividedLoss& divided, const Device& on) : loss(divided), device(on) {}

  const parallel::Group& group() const { return loss.group_; }

  Buffer held_array(const Buffer& mine, int components, const std::string& what) {
    const auto& [nx, ny, nz] = loss.mesh().cells;
    const parallel::Range planes = loss.own();
    const Shape& s = mine.shape();
    const int rank = s.rank();
    if (rank < 3 || s[rank - 1] != nx || s[rank - 2] != ny || s[rank - 3] != planes.size() ||
        mine.elements() != components * planes.size() * ny * nx || !mine.contiguous())
      throw InputError(fmt::format("{} of shape {}", what, to_string(s)), "pde inputs",
                       fmt::format("a contiguous ({}{}, {}, {}), planes {} to {} of {}",
                                   components > 1 ? fmt::format("{}, ", components) : "", planes.size(), ny,
                                   nx, planes.begin, planes.end - 1, nz));
    if (group().size() == 1) return mine;
    Shape shape = s;
    shape[rank - 3] = loss.held().size();
    own.push_back(mine);
    return held.emplace_back(device.allocate(mine.storage(), shape));
  }

  template <class Data>
  Data held_data(const Data& mine) {
    Data data = mine;
    for (auto& [name, levels] : data.fields) {
      int components = 1;
      for (const FieldInfo& field : loss.whole_->plan->fields)
        if (field.name == name) components = field.components;
      int level = std::is_same_v<Data, Inputs> ? -1 : 0;
      for (Buffer& array : levels) {
        if (array) array = held_array(array, components, fmt::format("field {} at level {}", name, level));
        ++level;
      }
    }
    if (data.mask) data.mask = held_array(data.mask, 1, "mask");
    return data;
  }

  /// Copies the own planes and begins to receive the others. Collective.
  void begin_fetch() const {
    const auto& [nx, ny, nz] = loss.mesh().cells;
    const int64_t planes = loss.own().size(), among = loss.held().size(), first = loss.state_->part->first;
    for (size_t k = 0; k < own.size(); ++k) {
      const int64_t components = own[k].elements() / (planes * ny * nx);
      const Buffer from = own[k].reshape({components * planes, ny, nx}),
                   to = held[k].reshape({components * among, ny, nx});
      for (int64_t c = 0; c < components; ++c)
        device.copy(from.rows(c * planes, planes), to.rows(c * among + first, planes));
    }
    if (!held.empty()) loss.begin_refresh(device, held);
  }
  void fetch() const {
    begin_fetch();
    group().finish_exchange();
  }

  /// A contiguous copy of the own planes of an array (…, held planes, ny, nx).
  Buffer own_copy(const Buffer& array) const {
    const auto& [nx, ny, nz] = loss.mesh().cells;
    const int64_t planes = loss.own().size(), among = loss.held().size(), first = loss.state_->part->first,
                  volumes = array.elements() / (among * ny * nx);
    Shape shape = array.shape();
    shape[shape.rank() - 3] = planes;
    const Buffer copy = device.allocate(array.storage(), shape);
    const Buffer from = array.reshape({volumes * among, ny, nx}),
                 to = copy.reshape({volumes * planes, ny, nx});
    for (int64_t v = 0; v < volumes; ++v)
      device.copy(from.rows(v * among + first, planes), to.rows(v * planes, planes));
    return copy;
  }

  template <class Data>
  std::array<parallel::Common, 4> common(const Data& data, const LossOptions& options) const {
    const Mesh& mesh = loss.mesh();
    std::string numbers =
        fmt::format("{} {} [{}] {} {} {}", int(options.gradients), int(options.path),
                    fmt::join(options.wanted, ","), data.seed, data.members, data.parameters.size());
    for (const auto& [name, value] : data.parameters) numbers += fmt::format(" {}={}", name, value);
    std::string arrays = data.mask ? "mask" : "";
    for (const auto& [name, levels] : data.fields) {
      arrays += " " + name;
      for (const Buffer& array : levels) arrays += array ? fmt::format(" {}", name_of(array)) : " -";
    }
    const auto add_profile = [&](const std::string& name, const Buffer& profile) {
      const Array content = device.download(profile).packed();
      arrays += fmt::format(" {} {} {}", name, name_of(profile),
                            to_hex(hash128(std::span(content.data(), size_t(content.bytes())))));
    };
    for (const auto& [name, profile] : data.profiles) add_profile(name, profile);
    if constexpr (std::is_same_v<Data, TrajectoryInputs>) {
      for (const auto& [name, values] : data.parameters_in_time)
        numbers += fmt::format(" {}={}", name, fmt::join(values, ","));
      for (const auto& [name, list] : data.profiles_in_time)
        for (const Buffer& profile : list) add_profile(name, profile);
    }
    return {{{"systems", loss.system_},
             {"meshes", fmt::format("{} {} {} {} {}", fmt::join(mesh.cells, "x"),
                                    fmt::join(mesh.spacing, "x"), mesh.dt, mesh.order, mesh.boundary.text())},
             {"options and parameters", std::move(numbers)},
             {"levels, types or profiles", std::move(arrays)}}};
  }

  /// The result of `work`, once every rank has it for equal losses. Collective.
  template <class Data, class Work>
  auto agreed(const Data& data, const LossOptions& options, Work work) const {
    std::optional<decltype(work())> result;
    std::array<parallel::Common, 4> texts;
    std::exception_ptr failure;
    std::string fault;
    try {
      result.emplace(work());
      texts = common(data, options);
    } catch (const Error& error) {
      failure = std::current_exception();
      fault = error.what();
    }
    try {
      parallel::expect_agreement(group(), texts, fault);
    } catch (const parallel::GroupError&) {
      if (failure) std::rethrow_exception(failure);  // this rank's own
      throw;
    }
    return std::move(*result);
  }

  template <class Data>
  static BoundPlanes bind(const DividedLoss& loss, const Device& device, const Data& data,
                          const LossOptions& options);

  DividedLoss loss;
  Device device;
  std::vector<Buffer> own, held;

 private:
  static std::string_view name_of(const Buffer& array) { return lockstep::name(array.storage()); }
};

struct BoundPlanes::State {
  PlaneBinding planes;
  std::optional<BoundLoss> bound;
  std::vector<double> terms;
};

template <class Data>
BoundPlanes PlaneBinding::bind(const DividedLoss& loss, const Device& device, const Data& data,
                               const LossOptions& options) {
  const auto state = std::make_shared<BoundPlanes::State>(BoundPlanes::State{{loss, device}, {}, {}});
  return state->planes.agreed(data, options, [&] {
    const Data held = state->planes.held_data(data);
    if constexpr (std::is_same_v<Data, Inputs>) {
      if (!held.gradients.empty())
        throw UnsupportedError("arrays for gradients over ranks", "pde inputs", "BoundPlanes::gradient");
      state->bound = loss.bind(device, held, options);
    } else {
      state->bound = loss.bind_trajectory(device, held, options);
    }
    return BoundPlanes(state);
  });
}

BoundPlanes DividedLoss::bind_planes(const Device& device, const Inputs& inputs,
                                     const LossOptions& options) const {
  return PlaneBinding::bind(*this, device, inputs, options);
}
BoundPlanes DividedLoss::bind_planes(const Device& device, const TrajectoryInputs& inputs,
                                     const LossOptions& options) const {
  return PlaneBinding::bind(*this, device, inputs, options);
}

void BoundPlanes::run() const {
  state_->planes.begin_fetch();
  state_->bound->run();
  state_->terms = state_->planes.loss.terms(*state_->bound);
}
const std::vector<double>& BoundPlanes::terms() const { return state_->terms; }
const std::vector<std::string>& BoundPlanes::term_names() const { return state_->bound->term_names(); }
Path BoundPlanes::path() const { return state_->bound->path(); }
Buffer BoundPlanes::gradient(std::string_view field, int level) const {
  const Buffer all = state_->bound->gradient(field, level);
  return all ? state_->planes.own_copy(all) : all;
}

Buffer DividedLoss::residuals_of_planes(const Device& device, const Inputs& inputs) const {
  PlaneBinding planes(*this, device);
  const Inputs held = planes.agreed(inputs, {}, [&] { return planes.held_data(inputs); });
  planes.fetch();
  return planes.own_copy(Loss(state_).residuals(device, held_inputs(device, held)));
}

std::vector<Loss::BoundaryGradient> DividedLoss::boundary_gradients_of_planes(const Device& device,
                                                                              const Inputs& inputs) const {
  PlaneBinding planes(*this, device);
  const Inputs held = planes.agreed(inputs, {}, [&] { return planes.held_data(inputs); });
  planes.fetch();
  return boundary_gradients(side_cells(device, held));
}

Loss::Numbers DividedLoss::number_gradients_of_planes(const Device& device, const Inputs& inputs) const {
  PlaneBinding planes(*this, device);
  const Inputs held = planes.agreed(inputs, {}, [&] { return planes.held_data(inputs); });
  planes.fetch();
  const Inputs data = held_inputs(device, held);
  const Checked checked(*state_->d, device, data);
  const Buffer cotangents = loss_cotangents(*state_, device, checked, data.seed);
  std::vector<double> rows = parameter_rows(*state_, device, checked, cotangents);
  const size_t count = whole_->plan->by_parameter.size();
  if (group_.size() > 1 && count > 0) {
    const size_t among = rows.size() / count;
    std::vector<double> mine;
    for (size_t k = 0; k < count; ++k) {
      const auto first = rows.begin() + int64_t(k * among) + state_->part->first;
      mine.insert(mine.end(), first, first + state_->part->planes);
    }
    rows = joined_rows(group_.all_gather(parallel::bytes_of(std::span<const double>(mine))), count);
  }
  std::vector<int64_t> sizes;
  for (const std::string& name : whole_->plan->profiles) sizes.push_back(inputs.profiles.at(name).elements());
  return sum_numbers(*whole_->plan, rows,
                     boundary_gradients(own_cells(pde::side_cells(*state_, device, checked, cotangents))),
                     sizes);
}

}  // namespace lockstep::pde
