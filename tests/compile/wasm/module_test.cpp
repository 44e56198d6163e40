// The binary form of modules and bodies, against bytes written by hand from the specification.
#include "compile/wasm/module.hpp"

#include <gtest/gtest.h>

#include "compile/wasm/body.hpp"

namespace lockstep::compile::wasm {
namespace {

Bytes unsigned_bytes(uint64_t value) {
  Bytes bytes;
  put_unsigned(bytes, value);
  return bytes;
}
Bytes signed_bytes(int64_t value) {
  Bytes bytes;
  put_signed(bytes, value);
  return bytes;
}

TEST(WasmModule, NumbersAreLeb128) {
  EXPECT_EQ(unsigned_bytes(0), (Bytes{0}));
  EXPECT_EQ(unsigned_bytes(127), (Bytes{0x7f}));
  EXPECT_EQ(unsigned_bytes(128), (Bytes{0x80, 0x01}));
  EXPECT_EQ(unsigned_bytes(624485), (Bytes{0xe5, 0x8e, 0x26}));
  // The sixth bit of the last byte is the sign.
  EXPECT_EQ(signed_bytes(63), (Bytes{0x3f}));
  EXPECT_EQ(signed_bytes(64), (Bytes{0xc0, 0x00}));
  EXPECT_EQ(signed_bytes(-64), (Bytes{0x40}));
  EXPECT_EQ(signed_bytes(-65), (Bytes{0xbf, 0x7f}));
  EXPECT_EQ(signed_bytes(-123456), (Bytes{0xc0, 0xbb, 0x78}));
  EXPECT_EQ(signed_bytes(INT64_MIN), (Bytes{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f}));
}

TEST(WasmModule, SectionsOfASmallModule) {
  Module module;
  const uint32_t imported = module.import_function("f", {{Kind::f64}, {Kind::f64}});
  const uint32_t first = module.declare({{Kind::i32}, {Kind::i32}});
  const uint32_t second = module.declare({{Kind::f64}, {Kind::f64}});  // shares the import's type
  module.export_function("kernel", second);
  module.define(first, {0x00, 0x20, 0x00, 0x0b});
  module.define(second, {0x00, 0x20, 0x00, 0x10, 0x00, 0x0b});
  EXPECT_EQ(imported, 0u);
  EXPECT_EQ(first, 1u);
  EXPECT_EQ(second, 2u);
  EXPECT_EQ(module.finish(),
            (Bytes{0,  'a', 's', 'm',  1,   0,    0,   0,                                 // version 1
                   1,  11,  2,   0x60, 1,   0x7c, 1,   0x7c, 0x60, 1,   0x7f, 1,   0x7f,  // types
                   2,  25,  2,                                                            // imports
                   4,  'c', 'o', 'r',  'e', 6,    'm', 'e',  'm',  'o', 'r',  'y', 2,    0, 1,
                   4,  'c', 'o', 'r',  'e', 1,    'f', 0,    0,                   //
                   3,  3,   2,   1,    0,                                         // functions
                   7,  10,  1,   6,    'k', 'e',  'r', 'n',  'e',  'l', 0,    2,  // exports
                   10, 13,  2,   4,    0,   0x20, 0,   0x0b, 6,    0,   0x20, 0,   0x10, 0, 0x0b}));
}

TEST(WasmBody, FreedLocalsAreUsedAgainByTheirKindOnly) {
  const auto body = std::make_shared<Body>(std::vector<Kind>{Kind::i32});
  const uint32_t freed = body->local(Kind::f32)->index();
  EXPECT_EQ(freed, 1u);
  const Local other = body->local(Kind::v128), again = body->local(Kind::f32);
  EXPECT_EQ(other->index(), 2u);
  EXPECT_EQ(again->index(), freed);
  EXPECT_EQ(body->local(Kind::f32)->index(), 3u) << "the first is held";
  EXPECT_EQ(body->finish(), (Bytes{3, 1, 0x7d, 1, 0x7b, 1, 0x7d, 0x0b}));
}

TEST(WasmBody, SectionsThatRunBeforeTakeNewLocals) {
  const auto body = std::make_shared<Body>(std::vector<Kind>{});
  body->local(Kind::i32);  // free at once, but code before the section may have used it
  Bytes section;
  Bytes* const before = body->redirect(&section);
  const Local kept = body->local(Kind::i32);
  body->get(kept);
  body->redirect(before);
  EXPECT_EQ(kept->index(), 1u);
  body->get(0);
  body->insert(0, section);
  EXPECT_EQ(body->finish({0x01}), (Bytes{1, 2, 0x7f, 0x01, 0x20, 1, 0x20, 0, 0x0b}));
}

TEST(WasmBody, BranchesCountOpenStructures) {
  const auto body = std::make_shared<Body>(std::vector<Kind>{});
  const Label outer = body->block(), inner = body->loop();
  body->branch(outer);
  body->branch(inner);
  EXPECT_TRUE(body->end());
  EXPECT_TRUE(body->end());
  body->block();
  EXPECT_FALSE(body->end()) << "no branch names it";
  EXPECT_EQ(body->finish(),
            (Bytes{0, 0x02, 0x40, 0x03, 0x40, 0x0c, 1, 0x0c, 0, 0x0b, 0x0b, 0x02, 0x40, 0x0b, 0x0b}));
}

TEST(WasmBody, OpcodesBehindAPrefix) {
  const auto body = std::make_shared<Body>(std::vector<Kind>{});
  body->op(Opcode(kVector | 0xae));
  body->lane(kExtract32, 3);
  body->memory(kLoad32Lane, 300, 2);
  body->constant(Kind::i32, 0xffffffffu);
  EXPECT_EQ(body->finish(),
            (Bytes{0, 0xfd, 0xae, 0x01, 0xfd, 0x1b, 3, 0xfd, 0x56, 0, 0xac, 0x02, 2, 0x41, 0x7f, 0x0b}));
}

}  // namespace
}  // namespace lockstep::compile::wasm
