// Reverse mode as launches: scratch memory, the adjoint kernel, and the sums behind it.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <optional>

#include "autodiff/kernels/adjoint.hpp"
#include "autodiff/kernels/gather.hpp"
#include "autodiff/kernels/roles.hpp"
#include "autodiff/kernels/sums/exact_sum.hpp"
#include "autodiff/kernels/sums/kept_tables.hpp"
#include "autodiff/kernels/sums/positions.hpp"
#include "autodiff/kernels/sums/sweep.hpp"
#include "device/state.hpp"
#include "ir/traced_form.hpp"
#include "lockstep/error.hpp"
#include "lockstep/primitives.hpp"

namespace lockstep {

using gradients::Flow;
using gradients::Plan;
using namespace ir;

/// The adjoint of a kernel and the launches around it.
struct AdjointForm {
  Plan plan;
  Kernel adjoint;
  bool empty = true;               // all gradients are gathered
  std::optional<Kernel> count;     // of words of records
  std::optional<Kernel> in_lanes;  // the adjoint with records of at most kLaneRecordWords, in the lanes
  struct OfBuffer {
    uint32_t buffer;  // of the kernel
    Kernel kernel;
  };
  std::vector<OfBuffer> gathered, swept, listed;  // gathers of shifts, of loops; positions of reads
  /// Whether it is for every launch.
  bool is_general() const { return gathered.empty() && swept.empty() && listed.empty(); }
};
struct Gradient::State {
  Kernel signature;                // no body: its parameters are what `launch` takes
  std::vector<AdjointForm> forms;  // the best one first; the last one fits every launch
  mutable gradients::KeptTables tables;
  mutable std::atomic<bool> records_fit = true;  // those of the last launch, into arrays of the lanes
};

namespace {

Kernel built(const std::string& name, const Plan& plan, std::vector<BufferParam> buffers,
             std::vector<ShapeRule> shapes, const std::function<void(Builder&)>& body) {
  return Kernel::trace(name, plan.f.domain, plan.f.rank,
                       KernelOptions{plan.f.group, plan.f.min_blocks, plan.f.contract}, [&](Builder& b) {
                         gradients::copy_frame(plan.f, b.function());
                         b.function().buffers = std::move(buffers);
                         b.function().shapes = std::move(shapes);
                         body(b);
                       });
}

/// The caller's arguments: the kernel's own, cotangents, gradients, each of the shape of what it belongs to.
class Signature {
 public:
  explicit Signature(const Plan& plan) : plan_(plan) {
    const auto& own = plan.f.buffers;
    number_.assign(own.size(), kNoBlock);
    for (size_t k = 0; k < own.size(); ++k)
      if (own[k].access != Access::write || !plan.roles.output_buffers[k]) number_[k] = add_own(own[k]);
    for (size_t k = 0; k < own.size(); ++k)
      if (plan.roles.output_buffers[k]) add_like(k, "_cotangent", Access::read);
    for (size_t k = 0; k < own.size(); ++k)
      if (plan.roles.input_buffers[k]) add_like(k, "_gradient", Access::write);
    for (size_t k = 0; k < plan.f.scalars.size(); ++k)
      if (plan.roles.input_scalars[k]) {
        const ScalarParam& s = plan.f.scalars[k];
        const Storage storage = gradients::wide_enough(s.type);
        shapes.push_back({add({s.name + "_gradient", storage, 1, Access::write}), 0, 1, 0, 0, s.place});
      }
  }
  std::vector<BufferParam> buffers;
  std::vector<ShapeRule> shapes;

 private:
  uint32_t add(BufferParam b) {
    b.position = -1;
    b.by_point = b.atomic = false;
    const auto same = [&](const auto& parameter) { return parameter.name == b.name; };
    if (std::ranges::any_of(buffers, same) || std::ranges::any_of(plan_.f.scalars, same))
      throw InputError(fmt::format("two parameters named {} in reverse mode", b.name),
                       where_of(plan_.f, b.place), "a parameter without the ending _gradient or _cotangent");
    buffers.push_back(std::move(b));
    return uint32_t(buffers.size() - 1);
  }
  /// Contents from before the kernel ran, which stay.
  uint32_t add_own(BufferParam b) {
    if (b.access == Access::read_write) b.access = Access::read;
    return add(std::move(b));
  }
  void add_like(size_t k, const char* ending, Access access) {
    BufferParam b = plan_.f.buffers[k];
    b.name += ending;
    b.storage = gradients::wide_enough(b.storage);
    b.access = access;
    const uint32_t number = add(b);
    for (int axis = 0; axis < b.rank && number_[k] != kNoBlock; ++axis)
      shapes.push_back({number, axis, -1, number_[k], axis, b.place});
  }

  const Plan& plan_;
  std::vector<uint32_t> number_;  // of the kernel's own buffers
};

Shape flat(const Buffer& b) { return {b.elements()}; }

/// One launch: the buffers by their names, scratch memory within the limit.
class Run {
 public:
  Run(const Gradient::State& state, const Device& device, const Shape& extent, const Arguments& arguments,
      const Gradient::Options& options, const std::source_location& line)
      : state_(state),
        device_(device),
        extent_(extent),
        line_(line),
        list_(arguments.bind(state.signature, line)),
        lane_records_(options.lane_records) {
    const std::vector<KernelParameter> parameters = state.signature.parameters();
    for (size_t k = 0; k < list_.size(); ++k) {
      given_.emplace(parameters[k].name, list_[k]);
      if (!parameters[k].buffer) numbers_.push_back(list_[k]);
    }
    if (options.memory_bytes > 0) left_ = options.memory_bytes;
    form_ = &*std::ranges::find_if(state.forms, [&](const AdjointForm& form) { return fits(form); });
  }

  void run() {
    check();
    if (form_->empty || extent_.elements() == 0) return bind(), finish();
    if (form_->in_lanes && lane_records_ && state_.records_fit && ran_in_lanes()) return finish();
    bind();
    if (plan().record != kNoBlock) bind_record();
    launch(form_->adjoint, bound_);
    finish();
  }

 private:
  bool fits(const AdjointForm& form) {
    const auto are_points = [&](const AdjointForm::OfBuffer& g) {
      return buffer(form.plan.f.buffers[g.buffer].name).shape() == extent_;
    };
    if (form.is_general()) return true;
    if (extent_.elements() == 0 || !std::ranges::all_of(form.gathered, are_points) ||
        !std::ranges::all_of(form.swept, are_points))
      return false;
    if (form.listed.empty() && form.swept.empty()) return true;
    if (!device_.info().limits.f64) return false;
    // Tables wait for the device, which a recording does not.
    if (!form.listed.empty() && device::recording_now()) return false;
    constexpr int64_t kMostTerms = INT32_MAX - (1 << 16);
    int64_t bytes = 0;
    for (const AdjointForm::OfBuffer& l : form.listed) {
      const Buffer& read = buffer(form.plan.f.buffers[l.buffer].name);
      const Shape shape = positions_shape(form, l.buffer);
      if (read.elements() == 0 || std::max(read.elements(), shape.elements()) > kMostTerms) return false;
      bytes += table_bytes(l.buffer, form);
    }
    return bytes <= left();
  }
  Shape positions_shape(const AdjointForm& form, uint32_t k) const {
    return {form.plan.listed(k), extent_.elements()};
  }
  /// With the contributions, by lane and in the order of the table.
  int64_t table_bytes(uint32_t k, const AdjointForm& form) const {
    const BufferParam& primal = form.plan.f.buffers[k];
    const Shape shape = positions_shape(form, k);
    const int64_t elements = buffer(primal.name).elements();
    return gradients::KeptTables::bytes(shape, elements) +
           primitives::transposed_table_bytes(device_, shape.elements(), elements) +
           2 * shape.elements() * size_of(gradients::wide_enough(primal.storage));
  }
  const Buffer& buffer(const std::string& name) const { return std::get<Buffer>(given_.at(name)); }

  /// Offsets of a buffer serve its gradients, cotangents and sums: all have its strides.
  void check() const {
    const Shape none = extent_.rank() == 1 ? Shape{0} : extent_.rank() == 2 ? Shape{0, 0} : Shape{0, 0, 0};
    device_.launch_with(state_.signature, none, list_, {}, line_);  // shapes, overlaps
    for (const KernelParameter& p : state_.signature.parameters()) {
      if (!p.buffer || buffer(p.name).contiguous() || !takes_part(p.name)) continue;
      throw InputError("a buffer with gaps between its rows",
                       fmt::format("kernel {}, argument {}", plan().f.name, p.name), "a contiguous one");
    }
  }
  /// False for the kernel's own buffers that are no inputs or outputs.
  bool takes_part(const std::string& name) const {
    for (size_t k = 0; k < plan().f.buffers.size(); ++k)
      if (plan().f.buffers[k].name == name)
        return plan().roles.input_buffers[k] || plan().roles.output_buffers[k];
    return true;
  }

  Buffer scratch(Storage storage, const Shape& shape, const std::string& what, Place place) {
    take(shape.elements() * size_of(storage), what, place);
    return device_.allocate(storage, shape);
  }
  int64_t left() {
    if (!left_) left_ = device_.memory().free_bytes / 2;
    return *left_;
  }
  void take(int64_t bytes, const std::string& what, Place place) {
    if (bytes > left())
      throw InputError(
          fmt::format("{} bytes for {}", bytes, what), where_of(plan().f, place),
          fmt::format("at most {} (Options::memory_bytes); fewer points in a launch, or fewer passes of "
                      "its loops",
                      *left_));
    *left_ -= bytes;
  }

  /// Whether a later launch writes each element of an input's gradient.
  bool all_written(uint32_t k) const {
    const Flow flow = plan().gradients[k];
    return flow == Flow::summed || flow == Flow::gathered || flow == Flow::swept || flow == Flow::listed ||
           (flow == Flow::single && buffer(plan().f.buffers[k].name).shape() == extent_);
  }
  void bind_buffer(uint32_t k) {
    const BufferParam& primal = plan().f.buffers[k];
    const std::string& name = primal.name;
    const bool input = plan().roles.input_buffers[k], output = plan().roles.output_buffers[k];
    if (primal.access != Access::write || !output) bound_[k] = buffer(name);
    if (input && !all_written(k)) device_.clear(buffer(name + "_gradient"));
    const uint32_t to = plan().gradient[k];
    if (plan().cotangents[k] == Flow::single) {
      bound_[k] = buffer(name + "_cotangent");
    } else if (plan().cotangents[k] == Flow::added) {
      bound_[plan().cotangent[k]] = buffer(name + "_cotangent");
    } else if (plan().cotangents[k] == Flow::memory) {
      const Storage storage = plan().buffers[plan().cotangent[k]].storage;
      const Shape& shape = output ? buffer(name + "_cotangent").shape() : buffer(name).shape();
      const Buffer work = input && to != kNoBlock
                              ? buffer(name + "_gradient")
                              : scratch(storage, shape, name + "_cotangent", primal.place);
      if (output)
        device_.copy(buffer(name + "_cotangent"), work);
      else
        device_.clear(work);
      bound_[plan().cotangent[k]] = work;
    } else if (plan().gradients[k] == Flow::summed) {
      const int64_t words = gradients::sum_words(value_type(primal.storage));
      bound_[to] = scratch(Storage::i64, {buffer(name).elements() * words},
                           "exact sums of " + name + "_gradient", primal.place);
      device_.clear(bound_[to]);
    } else if (plan().gradients[k] == Flow::listed) {
      take(table_bytes(k, *form_), "the table of the reads of " + name, primal.place);
      bound_[to] = device_.allocate(plan().buffers[to].storage, positions_shape(*form_, k));
    } else if (plan().gradients[k] == Flow::swept) {
      if (to != kNoBlock)
        bound_[to] = scratch(plan().buffers[to].storage, positions_shape(*form_, k), name, primal.place);
    } else if (to != kNoBlock) {
      bound_[to] = buffer(name + "_gradient");
    }
  }

  /// Of a buffer with an element for each lane.
  Shape lanes_shape() const {
    if (plan().f.domain == Domain::points) return extent_;
    return {extent_.elements() * plan().f.group_lanes()};
  }
  void bind_shared(size_t k) {
    if (plan().shared[k] == kNoBlock) return;
    const ArrayDecl& array = plan().f.shared[k];
    const int64_t elements = extent_.elements() * array.count;
    if (elements > INT32_MAX)
      throw InputError(fmt::format("{} elements of shared array {}", elements, array.name),
                       where_of(plan().f, plan().f.place), "at most 2^31 - 1 in all groups of a launch");
    const int64_t words = gradients::sum_words(value_type(array.storage));
    const Buffer sums = scratch(Storage::i64, {std::max<int64_t>(elements, 1), words},
                                "exact sums of shared array " + array.name, plan().f.place);
    device_.clear(sums);
    bound_[plan().shared[k]] = sums;
  }

  void bind() {
    bound_.assign(plan().buffers.size(), Buffer());
    for (uint32_t k = 0; k < plan().f.buffers.size(); ++k) bind_buffer(k);
    for (size_t k = 0; k < plan().terms.size(); ++k)
      if (plan().terms[k] != kNoBlock) {
        const Storage storage = plan().buffers[plan().terms[k]].storage;
        bound_[plan().terms[k]] = scratch(storage, lanes_shape(), plan().f.scalars[k].name, plan().f.place);
      }
    for (size_t k = 0; k < plan().shared.size(); ++k) bind_shared(k);
  }
  Buffer record_words() {
    const Buffer words =
        scratch(Storage::i32, {gradients::kCountSlots}, "counts of passes", plan().record_place);
    device_.clear(words);
    return words;
  }
  int64_t most(const Buffer& words) const { return std::ranges::max(device_.download<int32_t>(words)); }
  /// The adjoint with records in lanes, if all of them fit there. Else nothing stays of it.
  bool ran_in_lanes() {
    const std::optional<int64_t> before = left_;
    bind();
    const Buffer words = bound_[plan().record] = record_words();
    launch(*form_->in_lanes, bound_);
    if (most(words) == 0) return true;
    state_.records_fit = false;
    bound_.clear();
    left_ = before;
    return false;
  }
  void bind_record() {
    int64_t words = 0;
    {
      const Buffer counts = record_words();
      launch(*form_->count, with_own({counts}));
      words = most(counts);
      *left_ += counts.bytes();
    }
    state_.records_fit = words == 0;  // a launch with as many passes will do without these counts
    const Shape shape{words == 0 ? gradients::kLaneRecordWords : words,
                      std::max<int64_t>(lanes_shape().elements(), 1)};
    bound_[plan().record] = scratch(Storage::u32, shape, "the record of a loop", plan().record_place);
  }

  void launch(const Kernel& kernel, const std::vector<Buffer>& buffers) const {
    std::vector<Argument> list(buffers.begin(), buffers.end());
    list.insert(list.end(), numbers_.begin(), numbers_.end());
    device_.launch_with(kernel, extent_, list, {}, line_);
  }

  void finish() const {
    for (uint32_t k = 0; k < plan().f.buffers.size(); ++k) finish_buffer(k);
    for (const AdjointForm::OfBuffer& g : form_->gathered)
      launch(g.kernel, with_own({buffer(plan().f.buffers[g.buffer].name + "_gradient")}));
    for (const AdjointForm::OfBuffer& s : form_->swept) {
      std::vector<Buffer> buffers = with_own({});
      if (plan().own[s.buffer]) buffers.push_back(bound_[plan().gradient[s.buffer]]);
      buffers.push_back(buffer(plan().f.buffers[s.buffer].name + "_gradient"));
      launch(s.kernel, buffers);
    }
    for (const AdjointForm::OfBuffer& l : form_->listed) sum_listed(l);
    for (size_t k = 0; k < plan().terms.size(); ++k)
      if (plan().terms[k] != kNoBlock)
        primitives::reduce(device_, primitives::Reduce::sum, bound_[plan().terms[k]],
                           buffer(plan().f.scalars[k].name + "_gradient"));
  }
  /// The buffers of the plain form and further ones.
  std::vector<Buffer> with_own(std::initializer_list<Buffer> more) const {
    std::vector<Buffer> buffers(bound_.begin(), bound_.begin() + int64_t(plan().f.buffers.size()));
    buffers.insert(buffers.end(), more);
    return buffers;
  }
  void sum_listed(const AdjointForm::OfBuffer& l) const {
    const Buffer gradient = buffer(plan().f.buffers[l.buffer].name + "_gradient");
    const Shape shape = positions_shape(*form_, l.buffer);
    gradients::KeptTables::Key key{int64_t(l.buffer), gradient.elements(), extent_.elements()};
    for (int axis = 0; axis < extent_.rank(); ++axis) key.push_back(extent_[axis]);
    for (const BufferParam& own : plan().f.buffers)
      if (own.access == Access::read && !is_float(value_type(own.storage)))
        key.push_back(int64_t(buffer(own.name).native()));
    const gradients::RowTable table = state_.tables.table(
        device_, key, shape, gradient.elements(), [&](const Buffer& positions, const Buffer& changed) {
          launch(l.kernel, with_own({positions, changed}));
        });
    const Buffer& contributions = bound_[plan().gradient[l.buffer]];
    gradients::sum_rows(device_, table, contributions.reshape(flat(contributions)),
                        gradient.reshape(flat(gradient)));
  }
  void finish_buffer(uint32_t k) const {
    const BufferParam& primal = plan().f.buffers[k];
    const bool input = plan().roles.input_buffers[k], output = plan().roles.output_buffers[k];
    if (!input || plan().cotangents[k] == Flow::single || plan().cotangents[k] == Flow::memory) return;
    const Buffer gradient = buffer(primal.name + "_gradient");
    if (gradient.elements() == 0) return;
    if (plan().gradients[k] == Flow::summed) {
      const Type type = value_type(primal.storage);
      const Buffer sums =
          bound_[plan().gradient[k]].reshape({gradient.elements(), gradients::sum_words(type)});
      device_.launch(gradients::rounding_kernel(type), flat(gradient), sums,
                     gradient.reshape(flat(gradient)));
    }
    // The contents from before the launch pass through.
    if (output) primitives::axpy(device_, 1, buffer(primal.name + "_cotangent"), gradient);
  }

  const Plan& plan() const { return form_->plan; }

  const Gradient::State& state_;
  const AdjointForm* form_ = nullptr;
  const Device& device_;
  Shape extent_;
  const std::source_location& line_;
  std::vector<Argument> list_;  // in the order of the signature
  bool lane_records_;
  std::map<std::string, Argument> given_;
  std::vector<Argument> numbers_;
  std::vector<Buffer> bound_;    // by buffer of the adjoint kernel
  std::optional<int64_t> left_;  // bytes of scratch memory; known once some is needed
};

AdjointForm form_of(const std::string& name, Plan planned) {
  AdjointForm form;
  const Plan& plan = form.plan = std::move(planned);
  form.adjoint = built(name + ".adjoint", plan, plan.buffers, plan.shapes,
                       [&](Builder& b) { gradients::emit_adjoint(plan, b); });
  for (uint32_t to : plan.gradient) form.empty &= to == kNoBlock;
  for (uint32_t to : plan.terms) form.empty &= to == kNoBlock;
  /// A kernel that reads the buffers of the plain form and writes further ones.
  const auto reader = [&](const std::string& what, const std::vector<BufferParam>& more,
                          const std::function<void(Builder&)>& body) {
    std::vector<BufferParam> buffers(plan.buffers.begin(),
                                     plan.buffers.begin() + int64_t(plan.f.buffers.size()));
    for (BufferParam& b : buffers) b.access = Access::read;
    buffers.insert(buffers.end(), more.begin(), more.end());
    return built(name + what, plan, std::move(buffers), plan.f.shapes, body);
  };
  if (plan.record != kNoBlock) {
    form.count = reader(".record_words", {gradients::record_words()},
                        [&](Builder& b) { gradients::emit_count(plan, b); });
    Plan in_lanes = plan;
    in_lanes.in_lanes = true;
    in_lanes.buffers[plan.record] = gradients::record_words();
    form.in_lanes = built(name + ".adjoint_in_lanes", plan, in_lanes.buffers, plan.shapes,
                          [&](Builder& b) { gradients::emit_adjoint(in_lanes, b); });
  }
  for (uint32_t k = 0; k < plan.f.buffers.size(); ++k) {
    const BufferParam& primal = plan.f.buffers[k];
    const BufferParam gradient{primal.name + "_gradient", gradients::wide_enough(primal.storage), primal.rank,
                               Access::write, true};
    if (plan.gradients[k] == Flow::gathered)
      form.gathered.push_back({k, reader(".gather_" + primal.name, {gradient}, [&](Builder& b) {
                                 gradients::emit_gather(plan, gradients::shifted_reads(plan, k),
                                                        uint32_t(plan.f.buffers.size()), b);
                               })});
    if (plan.gradients[k] == Flow::swept) {
      std::vector<BufferParam> more{gradient};
      if (plan.own[k]) {
        more.insert(more.begin(), plan.buffers[plan.gradient[k]]);
        more[0].access = Access::read;
      }
      form.swept.push_back(
          {k, reader(".sweep_" + primal.name, more, [&](Builder& b) { gradients::emit_sweep(plan, k, b); })});
    }
    if (plan.gradients[k] == Flow::listed) {
      const BufferParam positions{"positions", Storage::i32, 2, Access::read_write};
      BufferParam changed{"changed", Storage::u32, 1, Access::read_write};
      changed.atomic = true;
      form.listed.push_back({k, reader(".positions_" + primal.name, {positions, changed},
                                       [&](Builder& b) { gradients::emit_positions(plan, k, b); })});
    }
  }
  return form;
}

}  // namespace

std::vector<KernelParameter> Gradient::parameters() const { return state_->signature.parameters(); }
std::vector<Kernel> Gradient::kernels() const {
  const AdjointForm& form = state_->forms.front();
  std::vector<Kernel> list;
  if (form.in_lanes && !form.empty) list.push_back(*form.in_lanes);
  if (form.count) list.push_back(*form.count);
  if (!form.empty) list.push_back(form.adjoint);
  for (const auto& kernels : {form.gathered, form.swept})
    for (const AdjointForm::OfBuffer& g : kernels) list.push_back(g.kernel);
  for (const AdjointForm::OfBuffer& l : form.listed) {
    list.push_back(l.kernel);
    list.push_back(gradients::row_sum_kernel(value_type(form.plan.f.buffers[l.buffer].storage)));
  }
  return list;
}
void Gradient::launch(const Device& device, const Shape& extent, const Arguments& arguments,
                      const Options& options, const std::source_location& line) const {
  Run(*state_, device, extent, arguments, options, line).run();
}

Gradient differentiate(const Kernel& kernel, const Differentiation& which) {
  const Function& traced = traced_form(kernel);
  const gradients::Roles roles = gradients::roles_of(traced, which);
  auto state = std::make_shared<Gradient::State>();
  const auto planned = [&](gradients::Ways ways) { return gradients::plan_adjoint(traced, roles, ways); };
  const auto add = [&](Plan plan) { state->forms.push_back(form_of(kernel.name(), std::move(plan))); };
  Plan best = planned({true, true});
  const auto has = [&](Flow flow) { return std::ranges::count(best.gradients, flow) > 0; };
  const bool gathers = has(Flow::gathered) || has(Flow::swept), tables = has(Flow::listed);
  add(std::move(best));
  if (gathers && tables) {
    add(planned({true, false}));
    add(planned({false, true}));
  }
  if (gathers || tables) add(planned({}));
  const Plan& plan = state->forms.back().plan;
  Signature signature(plan);
  state->signature = built(kernel.name() + ".gradient", plan, std::move(signature.buffers),
                           std::move(signature.shapes), [](Builder&) {});
  return Gradient(std::move(state));
}

}  // namespace lockstep
