// A folder of a test with a small task, and the comparison of two runs.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "device/devices.hpp"
#include "io/arrays/npy.hpp"
#include "lockstep/error.hpp"
#include "lockstep/forecast/train.hpp"
#include "verify/inputs.hpp"

namespace lockstep::forecast {

namespace fs = std::filesystem;

class Training : public testing::Test {
 protected:
  Training() : folder_(fs::path(testing::TempDir()) / ("lockstep-training-" + std::to_string(::getpid()))) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~Training() override { fs::remove_all(folder_); }

  static ContextOptions on(const std::string& device) {
    ContextOptions o;
    o.device = device;
    return o;
  }
  /// Two classes of points on the sides of a line; a network with all that draws or keeps state.
  std::string line_task(const std::string& optimizer, const char* loss = "cross_entropy") {
    cases::Random random(7);
    std::vector<f32> x;
    std::vector<i32> y;
    for (int i = 0; i < 200; ++i) {
      const double a = random.uniform(-1, 1), b = random.uniform(-1, 1);
      x.insert(x.end(), {f32(a), f32(b)});
      y.push_back(a > 0.5 * b + 0.1 ? 1 : 0);
    }
    io::write_npz(folder_ / "line.npz", {{"inputs", Array::of(x, {200, 2})}, {"targets", Array::of(y)}});
    const fs::path file = folder_ / "line.toml";
    std::ofstream(file)
        << "data = \"line.npz\"\nsteps = 60\nbatch = 16\nevaluate_every = 20\nloss = \"" << loss
        << "\"\n[optimizer]\n"
        << optimizer
        << "\n[[layers]]\nkind = \"dense\"\nunits = 16\nactivation = \"tanh\"\n"
           "[[layers]]\nkind = \"dropout\"\nrate = 0.1\n[[layers]]\nkind = \"dense\"\nunits = 2\n";
    return file.string();
  }
  static constexpr const char* kAdam =
      "method = \"adamw\"\nrate = 0.02\nschedule = \"cosine\"\nwarmup = 5\nweight_decay = 0.01\nclip_norm = "
      "0.5";

  std::string refused(const TrainOptions& options) {
    Context context(on(host_devices().front()));
    try {
      train(context, options);
    } catch (const InputError& e) { return e.what(); }
    return "nothing";
  }
  fs::path folder_;
};

inline void expect_same_run(const TrainRun& a, const TrainRun& b) {
  EXPECT_EQ(a.parameters, b.parameters);
  ASSERT_EQ(a.log.size(), b.log.size());
  for (size_t k = 1; k < a.log.size(); ++k) {
    EXPECT_EQ(a.log[k].step, b.log[k].step);
    EXPECT_EQ(a.log[k].train_loss, b.log[k].train_loss) << k;
    EXPECT_EQ(a.log[k].rate, b.log[k].rate);
    EXPECT_EQ(a.log[k].val_loss, b.log[k].val_loss);
    EXPECT_EQ(a.log[k].val_accuracy, b.log[k].val_accuracy);
  }
}

}  // namespace lockstep::forecast
