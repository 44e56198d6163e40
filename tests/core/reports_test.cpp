// The run summary, telemetry lines and trace files.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "core/reports/json_text.hpp"
#include "core/reports/summary.hpp"
#include "core/reports/telemetry.hpp"
#include "core/reports/trace.hpp"
#include "core/temporary_folder.hpp"
#include "lockstep/error.hpp"

namespace {

using namespace lockstep;
using namespace lockstep::test;
using nlohmann::json;
using nlohmann::ordered_json;

TEST(Summary, AddsUpStagesAndHasEveryMember) {
  RunSummary summary;
  summary.set_device("cuda:0");
  summary.set_numerics("fast");
  summary.add({"urban.svf", "cuda:0", 1.5, 100, 10, 4, 0});
  summary.add({"urban.svf", "cuda:0", 0.5, 1, 2, 3, 0});
  summary.add({"urban.svf", "cpu", 2.0, 0, 0, 5, 1});
  summary.peak_device_bytes(70);
  summary.peak_device_bytes(30);
  ordered_json object;
  summary.add_to(object);
  EXPECT_EQ(object["device"], "cuda:0");
  EXPECT_EQ(object["numerics"], "fast");
  EXPECT_EQ(object["stages"].size(), 2u);
  EXPECT_EQ(object["stages"][0].dump(),
            R"({"stage":"urban.svf","device":"cuda:0","seconds":2.0,"bytes_to_device":101,)"
            R"("bytes_from_device":12,"launches":7,"fallbacks":0})");
  EXPECT_EQ(object["fallbacks"].dump(), R"({"urban.svf":1})");
  EXPECT_EQ(object["peak_device_bytes"], 70);
  EXPECT_GE(object["seconds"].get<double>(), 0.0);
  EXPECT_NE(summary.table().find("1 fallback"), std::string::npos) << summary.table();
}

TEST(Summary, HumanUnits) {
  EXPECT_EQ(human_bytes(17), "17 B");
  EXPECT_EQ(human_bytes(12 * 1024), "12.0 KiB");
  EXPECT_EQ(human_bytes(uint64_t{3} << 29), "1.50 GiB");
  EXPECT_EQ(human_bytes(1024 * 1024 - 1), "1.00 MiB");
  EXPECT_EQ(human_bytes(UINT64_MAX), "16.0 EiB");
  EXPECT_EQ(human_seconds(1.234), "1.23 s");
  EXPECT_EQ(human_seconds(0.00456), "4.56 ms");
  EXPECT_EQ(human_seconds(7.8e-6), "7.8 µs");
}

TEST(Telemetry, OneWholeLinePerRecordFromManyThreads) {
  TemporaryFolder folder;
  Telemetry telemetry;
  telemetry.record({"lost", "cpu"});  // No file is open: nothing happens.
  telemetry.open(folder / "t.jsonl");
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int k = 0; k < 50; ++k)
        telemetry.record({"stage", "cpu", 0.25}, {{"thread", t}, {"text", "a\"b"}});
    });
  }
  for (auto& thread : threads) thread.join();
  telemetry.event("run", {{"nan", std::nan("")}, {"flag", true}, {"big", UINT64_MAX}, {"x", 1.5f}});
  telemetry.close();
  std::istringstream lines(read_text(folder / "t.jsonl"));
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const json object = json::parse(line);
    EXPECT_GE(object.at("time_s").get<double>(), 0.0);
    if (count < 200) {
      EXPECT_EQ(object.at("stage"), "stage");
      EXPECT_EQ(object.at("text"), "a\"b");
      EXPECT_EQ(object.at("seconds"), 0.25);
    } else {
      EXPECT_TRUE(object.at("nan").is_null());
      EXPECT_EQ(object.at("flag"), true);
      EXPECT_EQ(object.at("big").get<int64_t>(), INT64_MAX);
      EXPECT_EQ(object.at("x"), 1.5);
    }
  }
  EXPECT_EQ(count, 201);
}

TEST(Telemetry, RefusesAFolder) {
  TemporaryFolder folder;
  Telemetry telemetry;
  EXPECT_THROW(telemetry.open(folder.path()), InputError);
}

TEST(Trace, IsJsonWithSpansTracksAndCounters) {
  TemporaryFolder folder;
  Trace& trace = Trace::global();
  trace.open(folder / "t.json");
  trace.span("kernel", "device", 10, 5, "cuda:0", {{"bytes", 12}});
  trace.counter("memory", 3);
  { TimedScope scope("outer"); }
  trace.close();
  { TimedScope scope("after"); }
  const json object = json::parse(read_text(folder / "t.json"));
  std::map<std::string, json> events;
  for (const json& event : object.at("traceEvents")) events[event.at("name")] = event;
  EXPECT_EQ(events.at("kernel").at("ph"), "X");
  EXPECT_EQ(events.at("kernel").at("ts"), 10);
  EXPECT_EQ(events.at("kernel").at("dur"), 5);
  EXPECT_EQ(events.at("kernel").at("args").at("bytes"), 12);
  EXPECT_EQ(events.at("kernel").at("tid"), events.at("thread_name").at("tid"));
  EXPECT_EQ(events.at("thread_name").at("args").at("name"), "cuda:0");
  EXPECT_EQ(events.at("memory").at("args").at("value"), 3);
  EXPECT_GE(events.at("outer").at("dur").get<double>(), 0.0);
  EXPECT_FALSE(events.contains("after"));
}

TEST(JsonText, NothingInItSteersATerminalOrStopsAReader) {
  const std::string name = "a\x1b[2J\x7f\xc2\x9b\xc3\xa4\xff";
  const std::string text = json_text({{"file", name}});
  EXPECT_EQ(text, "{\"file\":\"a\\u001b[2J\\u007f\\u009b\xc3\xa4\xef\xbf\xbd\"}");
  EXPECT_EQ(ordered_json::parse(text)["file"], "a\x1b[2J\x7f\xc2\x9b\xc3\xa4\xef\xbf\xbd");
}

// what() is one line of the parts. The parts themselves are unchanged, regardless of the separators they hold.
TEST(Errors, CarryTheirParts) {
  const InputError e("a [b]: expected c\n", "file ]: expected \x1b [x", "d [e]");
  EXPECT_STREQ(e.what(), "a [b]: expected c  [file ]: expected   [x]: expected d [e]");
  EXPECT_EQ(e.problem(), "a [b]: expected c\n");
  EXPECT_EQ(e.where(), "file ]: expected \x1b [x");
  EXPECT_EQ(e.expected(), "d [e]");
  const DeviceError lost(DeviceFault::device_lost, "gone [1]");
  EXPECT_EQ(lost.problem(), "gone [1]");
  EXPECT_TRUE(lost.where().empty() && lost.expected().empty());
}

}  // namespace
