// Parameters beyond plain numbers: structs, and numbers that change between the replays of a graph.
#include "verify/cases/engine_cases.hpp"
#include "verify/inputs.hpp"

namespace lockstep::cases {
struct Mix {
  uint32_t factor;
  std::array<uint32_t, 2> masks;
  float scale;
  bool plus;
};
}  // namespace lockstep::cases
LOCKSTEP_STRUCT(lockstep::cases::Mix, factor, masks, scale, plus)

namespace lockstep::cases {

namespace {

constexpr int kReplays = 5;
Mix mix_of(int replay) {
  return {2654435761u * uint32_t(replay + 1),
          {0xff00ffu << replay, 7u + uint32_t(replay)},
          0.25f * float(replay),
          replay % 2 == 0};
}
uint32_t shift_of(int replay) { return uint32_t(3 + replay); }

}  // namespace

/// A graph of two launches, replayed with other numbers each time.
void add_parameter_cases(CaseRegistry& registry) {
  static const Kernel k =
      kernel("engine.parameters", [](At<1> at, Param<Mix> mix, InOut<u32, 1> x, Param<u32> shift) {
        const Val<u32> old = x[at], mixed = (old ^ mix.masks[0]) * mix.factor + (old >> shift);
        x[at] = select(mix.plus, mixed + mix.masks[1], mixed - mix.masks[1]) + cast<u32>(mix.scale * 4.0f);
      });
  Case c;
  c.name = "engine.parameters";
  c.dtype = "u32";
  c.small = {"0", "1", "1000", "65537"};
  c.kernels = [] { return std::vector{k}; };
  c.make = [](const std::string& size, uint64_t seed) {
    const int64_t n = parse_size(size)[0];
    std::vector<u32> x(static_cast<size_t>(n));
    Random random(seed);
    for (u32& v : x) v = random.u32();
    CaseProblem p;
    p.reference = [=] {
      std::vector<u32> y = x;
      for (int replay = 0; replay < kReplays; ++replay)
        for (u32& v : y)
          for (const u32 shift : {shift_of(replay), 1u}) {
            const Mix mix = shift == 1 ? mix_of(9) : mix_of(replay);
            const u32 mixed = (v ^ mix.masks[0]) * mix.factor + (v >> shift);
            v = (mix.plus ? mixed + mix.masks[1] : mixed - mix.masks[1]) + u32(mix.scale * 4.0f);
          }
      return std::vector{Array::of(y)};
    };
    p.bind = [=](const Device& device) {
      const Buffer from = device.upload(x), to = device.allocate<u32>({n});
      const Graph graph = device.record([&] {
        device.launch(k, {n}, per_replay("mix", mix_of(0)), to, per_replay("shift", 0u));
        device.launch(k, {n}, mix_of(9), to, 1u);
      });
      const auto run = [=] {
        device.copy(from, to);
        for (int replay = 0; replay < kReplays; ++replay)
          device.replay(graph, Arguments().set("mix", mix_of(replay)).set("shift", shift_of(replay)));
      };
      return CaseRun{run, [=] { return std::vector{device.download(to)}; }};
    };
    return p;
  };
  registry.add(c);
}

}  // namespace lockstep::cases
