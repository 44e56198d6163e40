// Content hashes against published vectors, and the entries that distinguish two runs.
#include "core/record/identity.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "core/record/journal.hpp"
#include "core/record/sha256.hpp"
#include "lockstep/error.hpp"
#include "temporary_folder.hpp"

namespace {

using namespace lockstep;
using namespace lockstep::record;

// FIPS 180-4 and NIST's examples (CSRC): one block, two blocks, a million letters.
TEST(Sha256, PublishedVectors) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(
      sha256(
          "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrs"
          "mnopqrstnopqrstu"),
      "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
  EXPECT_EQ(sha256(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, TheProcessorsInstructionsAreTheStandardsRounds) {
  std::mt19937 random(7);
  Sha256State plain{}, fast{};
  for (int round = 0; round < 100; ++round) {
    std::array<std::byte, 64> bytes;
    for (std::byte& b : bytes) b = static_cast<std::byte>(random());
    sha256_block(plain, bytes.data());
    fastest_sha256_block()(fast, bytes.data());
    ASSERT_EQ(plain, fast) << round;
  }
}

TEST(Sha256, PartsOfEverySizeGiveTheWhole) {
  std::string text;
  for (int k = 0; k < 200; ++k) text += char('a' + k % 23);
  for (size_t length : {55u, 56u, 63u, 64u, 65u, 119u, 128u, 200u})
    for (size_t cut = 0; cut <= length; cut += 7) {
      Sha256 hash;
      hash.update(std::string_view(text).substr(0, cut));
      hash.update(std::string_view(text).substr(cut, length - cut));
      EXPECT_EQ(hash.finish(), sha256(std::string_view(text).substr(0, length))) << length << " " << cut;
    }
}

Identity sample(double nu, int64_t steps, float value) {
  Identity id("flow run");
  id.option("nu", nu, true);
  id.option("closure", "leith");
  id.option("steps", steps, true, Effect::extent);
  id.option("out", "folder", true, Effect::display);
  id.option("tile", steps, true, Effect::speed);
  id.array("ic", Array::of(std::vector<f32>{1, value}));
  return id;
}

TEST(Identity, OnlyWhatChangesTheResultTellsRunsApart) {
  const Identity one = sample(1e-4, 100, 2);
  EXPECT_TRUE(one.differences(sample(1e-4, 900, 2)).empty());
  EXPECT_EQ(one.hash(), sample(1e-4, 900, 2).hash());
  const auto by_option = one.differences(sample(2e-4, 100, 2)),
             by_content = one.differences(sample(1e-4, 100, 3));
  ASSERT_EQ(by_option.size(), 1u);
  EXPECT_EQ(by_option[0], "nu = 0.0001, now 0.0002");
  ASSERT_EQ(by_content.size(), 1u);
  EXPECT_EQ(by_content[0].substr(0, 5), "ic = ");
  EXPECT_NE(one.hash(), sample(2e-4, 100, 2).hash());
  EXPECT_NE(one.hash(), sample(1e-4, 100, 3).hash());
  Identity more = sample(1e-4, 100, 2);
  more.option("drag", 0.5);
  EXPECT_EQ(one.differences(more), std::vector<std::string>{"drag = absent, now 0.5"});
  EXPECT_EQ(more.differences(one), std::vector<std::string>{"drag = 0.5, now absent"});
}

TEST(Identity, NumbersKeepEveryBitAndShapesCount) {
  Identity a, b;
  a.option("x", 0.1), b.option("x", 0.1 + 0x1p-56);
  EXPECT_FALSE(a.differences(b).empty());
  a = Identity(), b = Identity();
  a.array("x", Array::of(std::vector<f32>{1, 2, 3, 4}, {2, 2}));
  b.array("x", Array::of(std::vector<f32>{1, 2, 3, 4}, {4}));
  EXPECT_FALSE(a.differences(b).empty());
}

TEST(Identity, AFileIsItsContentWhereverItIs) {
  const test::TemporaryFolder folder;
  const auto write = [&](const char* name, const char* text) {
    std::ofstream(folder.path() / name) << text;
    Identity id;
    id.file("data", folder.path() / name);
    return id;
  };
  const Identity first = write("a", "abc");
  EXPECT_EQ(first.inputs()[0].sha256, sha256("abc"));
  EXPECT_EQ(first.inputs()[0].bytes, 3);
  EXPECT_TRUE(first.differences(write("b", "abc")).empty());
  EXPECT_FALSE(first.differences(write("a", "abd")).empty());
  EXPECT_THROW(write("no/such", "").file("x", folder.path() / "absent"), InputError);
}

TEST(Identity, JsonGoesRoundAndAnEditedOneIsRefused) {
  const Identity one = sample(1e-4, 100, 2);
  const std::string text = one.to_json();
  const Identity back = Identity::from_json(nlohmann::json::parse(text), "file");
  EXPECT_EQ(back.to_json(), text);
  EXPECT_TRUE(back.differences(one).empty());
  std::string edited = text;
  edited.replace(edited.find("leith"), 5, "smago");
  EXPECT_THROW(Identity::from_json(nlohmann::json::parse(edited), "file"), InputError);
  std::string unknown = text;
  unknown.replace(unknown.find("extent"), 6, "nought");
  EXPECT_THROW(Identity::from_json(nlohmann::json::parse(unknown), "file"), InputError);
  for (const char* bad :
       {"null", "[]", "{}", R"({"command":3})", R"({"command":"","options":[1],"inputs":[],"hash":""})"})
    EXPECT_THROW(Identity::from_json(nlohmann::json::parse(bad), "file"), InputError) << bad;
}

TEST(Journal, ListsEachFileOnceInEachRecording) {
  for (int recording = 0; recording < 2; ++recording) {
    journal::begin();
    for (const char* file : {"b", "a", "./b", "x/../a", "c"}) journal::output(file);
    journal::input("a");
    const journal::Entries entries = journal::entries();
    std::vector<std::string> names;
    for (const auto& file : entries.outputs) names.push_back(file.filename().string());
    EXPECT_EQ(names, (std::vector<std::string>{"b", "a", "c"}));
    EXPECT_EQ(entries.inputs.size(), 1u) << "what is written may be read too";
  }
}

}  // namespace
