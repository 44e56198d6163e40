// Readers of training logs: what they take, and what they refuse by name.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "io/checks.hpp"
#include "io/series/logs/training_log.hpp"

namespace {

using namespace lockstep;
using namespace lockstep::io;
using namespace lockstep::test;

std::string data_file(const char* name) { return std::string(LOCKSTEP_FORECAST_DATA) + "/" + name; }

TEST(TrainingLogs, CsvColumnsKeepTheirOwnSteps) {
  const TrainingLog log =
      parse_csv_log("step,loss,val_loss,when\n0,2.5,,09:00\n10,2.0,2.2,09:01\n20,1.5,,09:02\n", "a.csv");
  EXPECT_EQ(log.loss().steps, (std::vector<double>{0, 10, 20}));
  EXPECT_EQ(log.loss().values, (std::vector<double>{2.5, 2, 1.5}));
  EXPECT_EQ(log.column("val_loss").steps, (std::vector<double>{10}));
  EXPECT_EQ(error_of([&] { log.column("when"); }),
            "column 'when' is '09:00' [a.csv:2]: expected a finite number");
  EXPECT_EQ(error_of([&] { log.column("none"); }),
            "no column 'none' [a.csv]: expected one of loss, val_loss, when");
}

TEST(TrainingLogs, CsvWithoutHeaderAndOtherStepNames) {
  EXPECT_EQ(parse_csv_log("1 2.5\n2 2.25\n", "a").loss().values, (std::vector<double>{2.5, 2.25}));
  const TrainingLog log = parse_csv_log("loss;epoch\n1;0\n0.5;1\n", "a");
  EXPECT_EQ(log.step_name, "epoch");
  EXPECT_EQ(log.loss().steps, (std::vector<double>{0, 1}));
}

TEST(TrainingLogs, CsvFlawsNameTheLine) {
  const auto loss_of = [](const char* text) {
    return error_of([&] { parse_csv_log(text, "a.csv").loss(); });
  };
  EXPECT_EQ(loss_of("step,loss\n1,2\n2,nan\n3,1\n"),
            "column 'loss' is 'nan' [a.csv:3]: expected a finite number");
  EXPECT_EQ(loss_of("step,loss\n1,2\n2,inf\n"), "column 'loss' is 'inf' [a.csv:3]: expected a finite number");
  EXPECT_EQ(loss_of("step,loss\n1,2\n1,3\n"),
            "step 1 of 'loss' is repeated [a.csv:3]: expected increasing steps");
  EXPECT_EQ(loss_of("step,loss\n5,2\n4,3\n"),
            "step 4 of 'loss' after step 5 [a.csv:3]: expected increasing steps");
  EXPECT_EQ(loss_of("step,loss\n5,2\n6\n"), "1 fields [a.csv:3]: expected 2 as above");
  EXPECT_EQ(loss_of("step,loss\n-5,2\n"), "the step is '-5' [a.csv:2]: expected a number from 0");
  EXPECT_EQ(loss_of(""), "no rows [a.csv]: expected a log of a training run (CSV)");
  EXPECT_EQ(loss_of("step,loss\n"), "no values [a.csv]: expected steps with numbers such as a loss");
  EXPECT_TRUE(has(loss_of("time,loss\n1,2\n"), "no column of steps [a.csv:1]"));
  EXPECT_TRUE(has(loss_of("step,a,b\n1,2,3\n"), "expected a choice by --column of a, b"));
}

TEST(TrainingLogs, JsonLines) {
  const TrainingLog log = parse_json_lines_log(
      "{\"step\": 1, \"loss\": 2.5, \"train\": {\"lr\": 0.1}}\n\n{\"step\": 2, \"loss\": null}\n"
      "{\"step\": 2, \"eval_loss\": 2, \"note\": \"x\"}\n{\"step\": 3, \"loss\": 2}\n",
      "a.jsonl");
  EXPECT_EQ(log.loss().steps, (std::vector<double>{1, 3}));
  EXPECT_EQ(log.column("train.lr").values, (std::vector<double>{0.1}));
  EXPECT_EQ(log.column("eval_loss").steps, (std::vector<double>{2}));
  EXPECT_EQ(error_of([&] { log.column("note"); }), "'note' is a text [a.jsonl:4]: expected a finite number");
  const auto error = [](const char* text) {
    return error_of([&] { parse_json_lines_log(text, "a.jsonl").loss(); });
  };
  EXPECT_EQ(error("{\"step\": 1, \"loss\": NaN}\n"),
            "NaN or Infinity, which are not JSON [a.jsonl:1]: expected finite numbers or null");
  EXPECT_EQ(error("{\"step\": 1, \"loss\": 2}\n{\"step\": 2, \"lo"),
            "a line that is not JSON [a.jsonl:2]: expected an object in each line");
  EXPECT_EQ(error("[1, 2]\n"),
            "a line that is not a JSON object [a.jsonl:1]: expected an object in each line");
  EXPECT_TRUE(has(error("{\"loss\": 2}\n"), "an object without a step [a.jsonl:1]"));
  EXPECT_TRUE(has(error("{\"step\": \"x\", \"loss\": 2}\n"), "'step' is \"x\" [a.jsonl:1]"));
  EXPECT_TRUE(has(error("{\"step\": 2, \"loss\": 2}\n{\"step\": 1, \"loss\": 2}\n"),
                  "step 1 of 'loss' after step 2 [a.jsonl:2]"));
  EXPECT_TRUE(has(error(""), "no rows [a.jsonl]"));
}

// The vectors of RFC 3720, B.4, before masking.
TEST(TrainingLogs, Checksum) {
  const auto unmasked = [](const Bytes& bytes) { return std::rotl(masked_crc32c(bytes) - 0xa282ead8u, 15); };
  EXPECT_EQ(unmasked(Bytes(32, std::byte(0))), 0x8a9136aau);
  EXPECT_EQ(unmasked(Bytes(32, std::byte(0xff))), 0x62a8ab43u);
  EXPECT_EQ(unmasked(bytes_of("123456789")), 0xe3069283u);
}

// Messages in wire format, written here apart from the reader.
std::string varint(uint64_t v) {
  std::string text;
  for (; v >= 0x80; v >>= 7) text += char(v | 0x80);
  return text + char(v);
}
std::string member(int number, const std::string& bytes) {
  return varint(uint64_t(number) * 8 + 2) + varint(bytes.size()) + bytes;
}
template <class T>
std::string raw(T value) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}
std::string record(const std::string& data) {
  const std::string length = raw(uint64_t(data.size()));
  return length + raw(masked_crc32c(bytes_of(length))) + data + raw(masked_crc32c(bytes_of(data)));
}
std::string event(int64_t step, const std::string& value) {
  return record("\x09" + raw(1.5) + "\x10" + varint(uint64_t(step)) + member(5, member(1, value)));
}

TEST(TrainingLogs, TensorBoardTensors) {
  const auto tensor = [](const std::string& content) { return member(1, "loss") + member(8, content); };
  const std::string file =
      record(
          "\x1a\x0d"
          "brain.Event:2") +
      event(1, member(1, "loss") + "\x15" + raw(2.5f)) +
      event(2, tensor("\x08\x01" + member(4, raw(2.25f)))) +             // float in tensor_content
      event(3, tensor("\x08\x01" + member(5, raw(2.125f)))) +            // packed float_val
      event(4, tensor("\x08\x02" + member(6, raw(2.0)))) +               // packed double_val
      event(5, tensor(std::string("\x08\x03") + "\x38\x07")) +           // int_val
      event(6, tensor("\x08\x13" + member(4, raw(uint16_t(0x3c00))))) +  // half
      event(7, tensor("\x08\x01" + member(4, raw(1.0f) + raw(2.0f))));   // two elements: no scalar
  const TrainingLog log = parse_tfevents_log(bytes_of(file), "f");
  EXPECT_EQ(log.loss().steps, (std::vector<double>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(log.loss().values, (std::vector<double>{2.5, 2.25, 2.125, 2, 7, 1}));
}

// Written by tensorboardX 2.6: 60 losses 2 (k + 1)^-1/2 + 0.1 at steps 10 k, a fifth as many of val/loss, a text.
TEST(TrainingLogs, TensorBoardFileOfAnotherWriter) {
  const TrainingLog log = read_training_log(data_file("events.out.tfevents.sample"));
  const LogColumn& loss = log.column("train/loss");
  ASSERT_EQ(loss.steps.size(), 60u);
  for (size_t k = 0; k < 60; ++k) {
    EXPECT_EQ(loss.steps[k], 10.0 * double(k));
    EXPECT_EQ(loss.values[k], double(float(2 / std::sqrt(double(k) + 1) + 0.1)));
  }
  EXPECT_EQ(log.column("val/loss").values.size(), 12u);
}

TEST(TrainingLogs, TensorBoardDamage) {
  std::string file = event(1, member(1, "loss") + "\x15" + raw(2.5f));
  const size_t first = file.size();
  file += event(2, member(1, "loss") + "\x15" + raw(2.0f));
  const auto error = [](const std::string& text) {
    return error_of([&] { parse_tfevents_log(bytes_of(text), "f").loss(); });
  };
  std::string damaged = file;
  damaged[first + 14] ^= 1;
  EXPECT_TRUE(has(error(damaged), "the checksum of a record's data is wrong [f, record 2]"));
  damaged = file;
  damaged[first + 1] ^= 1;
  EXPECT_TRUE(has(error(damaged), "the checksum of a record's length is wrong [f, record 2]"));
  EXPECT_TRUE(has(error(file.substr(0, file.size() - 3)), "the file ends inside of a record [f, record 2]"));
  EXPECT_TRUE(
      has(error(file.substr(0, first + 5)), "the file ends inside of a record's header [f, record 2]"));
  EXPECT_TRUE(has(error(file + event(2, member(1, "loss") + "\x15" + raw(2.0f))),
                  "step 2 of 'loss' is repeated [f:3]"));
  EXPECT_TRUE(
      has(error(file + event(3, member(1, "loss") + "\x15" + raw(NAN))), "column 'loss' is 'nan' [f:3]"));
  EXPECT_TRUE(has(error(record(std::string("\x2a\x7f") + "x")),
                  "a field that goes beyond its message [f, record 1]"));
  EXPECT_TRUE(has(error(""), "an empty file"));
  EXPECT_TRUE(has(error(record("\x1a\x0d"
                               "brain.Event:2")),
                  "no values [f]"));
}

TEST(TrainingLogs, FilesByTheirNames) {
  EXPECT_EQ(read_training_log(data_file("sweep.csv")).columns.size(), 16u);
  EXPECT_TRUE(has(error_of([] { read_training_log("none.csv"); }), "none.csv"));
  EXPECT_TRUE(has(error_of([] { read_training_log("a.xml"); }), "a file named 'a.xml'"));
}

}  // namespace
