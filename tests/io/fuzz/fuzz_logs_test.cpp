// Mutated logs of training runs.
#include <cmath>

#include "io/fuzz/fuzz_files.hpp"
#include "io/series/logs/training_log.hpp"

namespace {

using namespace lockstep;
using namespace lockstep::io;
using namespace lockstep::test;

std::string_view log_text_of(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void expect_sound(const TrainingLog& log) {
  for (const LogColumn& c : log.columns) {
    ASSERT_EQ(c.steps.size(), c.values.size());
    for (size_t k = 0; k < c.steps.size(); ++k) {
      ASSERT_TRUE(std::isfinite(c.values[k]));
      ASSERT_TRUE(k == 0 ? c.steps[k] >= 0 : c.steps[k] > c.steps[k - 1]);
    }
  }
}

TEST(Fuzz, CsvLog) {
  fuzz({bytes_of("step,loss,lr\n1,2.5,0.1\n2,2.25,0.1\n3,,0.05\n"), bytes_of("0 1.5\n1 1.25\n")},
       [](const Bytes& b) { expect_sound(parse_csv_log(log_text_of(b), "fuzz")); });
}
TEST(Fuzz, JsonLinesLog) {
  fuzz({bytes_of("{\"step\":1,\"loss\":2.5,\"a\":{\"b\":1}}\n{\"step\":2,\"loss\":null}\n"),
        bytes_of("{\"epoch\":0,\"train_loss\":1e-3}\n")},
       [](const Bytes& b) { expect_sound(parse_json_lines_log(log_text_of(b), "fuzz")); });
}
// Damage that the checksums would hide is behind them: the messages are changed, then framed.
TEST(Fuzz, TensorBoardLog) {
  const auto raw = [](const auto& value) {
    return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
  };
  const auto framed = [&](const Bytes& data) {
    const std::string length = raw(uint64_t(data.size()));
    return bytes_of(length + raw(masked_crc32c(bytes_of(length))) + std::string(log_text_of(data)) +
                    raw(masked_crc32c(data)));
  };
  const Bytes simple = bytes_of(std::string("\x10\x07\x2a\x0d\x0a\x0b\x0a\x04loss\x15\x00\x00\x20\x40", 17));
  const Bytes tensor = bytes_of(std::string(
      "\x10\x07\x2a\x14\x0a\x12\x0a\x04loss\x42\x0a\x08\x01\x12\x00\x2a\x04\x00\x00\x20\x40", 24));
  for (const Bytes& seed : {simple, tensor})
    ASSERT_EQ(parse_tfevents_log(framed(seed), "fuzz").loss().values, (std::vector<double>{2.5}));
  fuzz({simple, tensor}, [&](const Bytes& b) { expect_sound(parse_tfevents_log(framed(b), "fuzz")); });
  fuzz({framed(simple)}, [&](const Bytes& b) { expect_sound(parse_tfevents_log(b, "fuzz")); });
}

}  // namespace
