#include "compile/passes/forms/columns.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "compile/passes/expressions/cse.hpp"
#include "compile/passes/expressions/simplify.hpp"
#include "compile/passes/forms/stencil.hpp"
#include "compile/passes/rewrite.hpp"
#include "compile/passes/structure/dead_code.hpp"
#include "lockstep/ir/builder.hpp"

namespace lockstep::compile {

using namespace ir;

namespace {

constexpr int64_t kFarthest = 64;  // offsets along x

/// How an offset names its column: x + offset, under the rule of an edge.
struct Column {
  enum Rule : uint8_t { plain, clamped, periodic } rule = plain;
  int64_t offset = 0;
  Id extent = kNone;
};
/// An element offset as the column and a row, the sum of terms without x.
struct AccessPlace {
  Column column;
  std::vector<Id> row;  // sorted
  bool no_wrap = true;
};
using RowKey = std::pair<uint64_t, std::vector<Id>>;  // buffer, row

/// The kernel at one point, as far as the form asks.
class Analysis {
 public:
  explicit Analysis(const Function& f) : f_(f), varies_(f.instructions.size(), false) {}

  /// Whether the body has only what four columns may do side by side.
  bool sound() {
    if (f_.domain != Domain::points || f_.group[0] > 0 || !f_.locals.empty() || f_.blocks.size() != 1)
      return false;
    for (Id id : f_.blocks[0]) {
      const Instruction& i = f_[id];
      varies_[id] = i.op == Op::coord && i.imm == 0;
      for (int a = 0; a < i.arg_count(); ++a) varies_[id] = varies_[id] || varies_[i.args[size_t(a)]];
      if (i.op == Op::load || i.op == Op::store) {
        const bool reads = f_.buffers[i.imm].access == Access::read;
        if (i.lanes > 1 || f_.buffers[i.imm].atomic || reads != (i.op == Op::load)) return false;
        if (i.op == Op::store && !varies_[id]) return false;
      } else if (!is_pure(i.op) && i.op != Op::call) {
        return false;
      }
    }
    return true;
  }
  bool varies(Id id) const { return varies_[id]; }

  /// The row and column of a load or store whose row may begin at a multiple of four elements.
  std::optional<AccessPlace> place(const Instruction& access) const {
    if (size_of(f_.buffers[access.imm].storage) != 4) return {};
    AccessPlace found;
    if (int columns = 0; !split(access.args[0], found, columns) || columns != 1) return {};
    std::sort(found.row.begin(), found.row.end());
    return found;
  }

  /// The stride in `coordinate * stride` or by itself, through a conversion; kNone for other terms.
  Id stride_of(Id term) const {
    if (f_[term].op == Op::convert) return stride_of(f_[term].args[0]);
    if (f_[term].op == Op::stride) return term;
    if (f_[term].op != Op::imul) return kNone;
    for (Id factor : {f_[term].args[0], f_[term].args[1]})
      if (f_[factor].op == Op::stride) return factor;
    return kNone;
  }

  std::optional<Column> column(Id id) const {
    if (f_[id].op == Op::convert && f_[f_[id].args[0]].type == Type::i32) id = f_[id].args[0];
    int axis = 0;
    Column c;
    Period period;
    if (match_period(f_, id, period)) {
      c = {Column::periodic, signed_constant(f_[period.offset]), period.extent};
      axis = period.axis;
      if (period.low ? c.offset > 0 : c.offset < 0) return {};
    } else if (f_[id].op == Op::clamp_index) {
      c = {Column::clamped, 0, f_[id].args[1]};
      if (!match_coordinate(f_, f_[id].args[0], axis, c.offset) || !is_extent(f_, c.extent)) return {};
    } else if (!match_coordinate(f_, id, axis, c.offset)) {
      return {};
    }
    if (axis != 0 || c.offset < -kFarthest || c.offset > kFarthest) return {};
    return c;
  }

 private:
  /// Takes a sum apart; false for terms that no row may have.
  bool split(Id id, AccessPlace& place, int& columns) const {
    if (!varies_[id] && stride_of(id) != kNone) {
      place.row.push_back(id);
      return true;
    }
    if (varies_[id])
      if (const auto c = column(id)) {
        place.column = *c;
        ++columns;
        return true;
      }
    const Instruction& i = f_[id];
    if (i.op == Op::constant && signed_constant(i) % kColumns == 0) {
      place.row.push_back(id);
      return true;
    }
    if (i.op != Op::iadd) return false;
    place.no_wrap &= (i.flags & kNoWrap) != 0;
    return split(i.args[0], place, columns) && split(i.args[1], place, columns);
  }

  const Function& f_;
  std::vector<bool> varies_;
};

/// Writes the form.
class Columns {
 public:
  Columns(const Function& f, const Analysis& analysis) : f_(f), analysis_(analysis), b_(out_) {
    out_ = f;
    out_.instructions.clear();
    out_.blocks = {Block{}};
    moved_.resize(f.instructions.size());
  }

  std::optional<ColumnsForm> run() {
    find_rows();
    for (Id id : f_.blocks[0]) translate(id);
    if (!wide_) return {};
    for (int pass = 0; pass < 2; ++pass) {
      simplify(out_);
      cse(out_);
    }
    dead_code(out_);
    compact(out_);
    for (Id id : out_.blocks[0]) {
      const Instruction& i = out_[id];
      if (i.op == Op::store) ++form_.stores;
      if (i.op == Op::load) ++(i.lanes > 1 ? form_.rows : form_.sides);
    }
    form_.function = std::move(out_);
    return std::move(form_);
  }

 private:
  /// Rows of which four columns read x … x + 3.
  void find_rows() {
    std::map<RowKey, uint32_t> read;  // bit j: x + j
    for (Id id : f_.blocks[0]) {
      const Instruction& i = f_[id];
      if (i.op != Op::load && i.op != Op::store) continue;
      form_.accesses_of_points += analysis_.varies(id) ? kColumns : 1;
      if (!analysis_.varies(id) || i.op == Op::store) continue;
      const auto place = analysis_.place(i);
      if (!place) continue;
      uint32_t& columns = read[{i.imm, place->row}];
      for (int64_t k = 0; k < kColumns; ++k)
        if (const int64_t at = k + place->column.offset; at >= 0 && at < kColumns) columns |= 1u << at;
    }
    for (const auto& [key, columns] : read)
      if (columns == (1u << kColumns) - 1) rows_[key] = kNone;
  }

  void translate(Id id) {
    const Instruction& i = f_[id];
    auto& to = moved_[id];
    b_.at(i.place);
    int axis = 0;
    int64_t offset = 0;
    if (!analysis_.varies(id)) {
      to.fill(copy(id, 0));
    } else if (match_coordinate(f_, id, axis, offset) && axis == 0 && i.type == Type::i32) {
      for (int k = 0; k < kColumns; ++k) to[size_t(k)] = at_column(offset + k);
    } else if (i.op == Op::load && load(id)) {
      wide_ = true;
    } else if (i.op == Op::store) {
      store(id);
    } else {
      for (int k = 0; k < kColumns; ++k) to[size_t(k)] = copy(id, k);
    }
  }

  Id copy(Id id, int k) {
    if (in_row(f_[id], k)) return b_.boolean(true);
    Instruction i = f_[id];
    for (Id& a : i.args)
      if (a != kNone) a = moved_[a][size_t(k)];
    return b_.append(i);
  }
  /// Whether this is the comparison of Boundary::zero along x, and column k of it surely lies inside.
  bool in_row(const Instruction& i, int k) {
    Within within;
    if (!match_within(f_, i, within) || within.axis != 0) return false;
    if (const int64_t at = k + within.offset; at < 0 || at >= kColumns) return false;
    require_extent(within.extent);
    return true;
  }

  Id at_column(int64_t offset) {
    const auto [found, fresh] = columns_.try_emplace(offset, kNone);
    if (!fresh) return found->second;
    if (offset == 0) return found->second = b_.emit(Op::coord, Type::i32, {}, 0);
    const Id x = at_column(0);
    return columns_[offset] = b_.op(Op::iadd, {x, b_.i32(int32_t(offset))}, kNoWrap);
  }
  /// The column x + offset under the rule of an edge, as the kernel has it for a point there.
  Id ruled(const Column& rule, int64_t offset) {
    if (rule.rule == Column::plain) return at_column(offset);
    const Id n = moved_[rule.extent][0];
    if (rule.rule == Column::clamped) return b_.emit(Op::clamp_index, Type::i32, {at_column(offset), n});
    // The extent holds four columns, so a shift by as many is at most one period.
    Id c = at_column(offset);
    if (offset < -kColumns || offset > kColumns) {
      const Id shift = b_.op(Op::irem, {b_.i32(int32_t(offset)), n});
      c = b_.op(Op::iadd, {at_column(0), shift}, kNoWrap);
    }
    if (offset < 0) return b_.select(b_.op(Op::ilt, {c, b_.i32(0)}), b_.op(Op::iadd, {c, n}, kNoWrap), c);
    return b_.select(b_.op(Op::ile, {n, c}), b_.op(Op::isub, {c, n}, kNoWrap), c);
  }
  /// The element offset of a column in a row.
  Id offset_of(const AccessPlace& place, Id column) {
    Id sum = kNone;
    const uint8_t flags = place.no_wrap ? kNoWrap : 0;
    for (Id term : place.row)
      sum = sum == kNone ? moved_[term][0] : b_.op(Op::iadd, {sum, moved_[term][0]}, flags);
    const Id x = b_.type(column) == f_.index_type ? column : b_.convert(f_.index_type, column);
    return sum == kNone ? x : b_.op(Op::iadd, {sum, x}, flags);
  }
  /// The form holds only where this access may be one of four elements.
  void require(const Instruction& access, const AccessPlace& place) {
    const auto buffer = uint32_t(access.imm);
    if (std::find(form_.buffers.begin(), form_.buffers.end(), buffer) == form_.buffers.end())
      form_.buffers.push_back(buffer);
    for (Id term : place.row) {
      const Id stride = analysis_.stride_of(term);
      if (stride == kNone) continue;
      const uint64_t bits = f_[stride].imm;
      const auto same = [&](const ColumnsForm::Stride& s) { return s.buffer * 8 + uint64_t(s.axis) == bits; };
      if (std::none_of(form_.strides.begin(), form_.strides.end(), same))
        form_.strides.push_back({uint32_t(bits / 8), int(bits % 8)});
    }
    if (place.column.extent != kNone) require_extent(place.column.extent);
  }
  void require_extent(Id extent) {
    const auto same = [&](Id e) { return extent_key(f_, e) == extent_key(f_, extent); };
    if (std::none_of(form_.extents.begin(), form_.extents.end(), same)) form_.extents.push_back(extent);
  }

  bool load(Id id) {
    const Instruction& i = f_[id];
    const auto place = analysis_.place(i);
    if (!place) return false;
    const auto row = rows_.find({i.imm, place->row});
    if (row == rows_.end()) return false;
    require(i, *place);
    ++form_.loads_of_rows;
    const auto element = [&](Id offset, int lanes) {
      Instruction one = i;
      one.lanes = uint8_t(lanes);
      one.args = Instruction::operands({offset});
      return b_.append(one);
    };
    if (row->second == kNone) row->second = element(offset_of(*place, at_column(0)), kColumns);
    for (int k = 0; k < kColumns; ++k) {
      const int64_t at = k + place->column.offset;
      moved_[id][size_t(k)] = at >= 0 && at < kColumns
                                  ? b_.emit(Op::extract, i.type, {row->second}, uint64_t(at))
                                  : element(offset_of(*place, ruled(place->column, at)), 1);
    }
    return true;
  }

  void store(Id id) {
    const Instruction& i = f_[id];
    const auto place = analysis_.place(i);
    if (!place || place->column.rule != Column::plain || place->column.offset != 0) {
      for (int k = 0; k < kColumns; ++k) copy(id, k);
      return;
    }
    require(i, *place);
    Instruction whole = i;
    whole.lanes = kColumns;
    whole.args = Instruction::operands({offset_of(*place, at_column(0))});
    for (int k = 0; k < kColumns; ++k) whole.args[size_t(1 + k)] = moved_[i.args[1]][size_t(k)];
    b_.append(whole);
  }

  const Function& f_;
  const Analysis& analysis_;
  Function out_;
  Builder b_;
  ColumnsForm form_;
  std::vector<std::array<Id, kColumns>> moved_;
  std::map<int64_t, Id> columns_;  // x + offset
  std::map<RowKey, Id> rows_;      // loaded whole: the load
  bool wide_ = false;
};

/// Appends values and blocks of one function to another.
class Copier {
 public:
  Copier(const Function& from, Builder& to) : from_(from), to_(to), moved_(from.instructions.size(), kNone) {}
  void body() {
    for (Id id : from_.blocks[0]) value(id);
  }
  Id value(Id id) {
    if (moved_[id] != kNone) return moved_[id];
    Instruction i = from_[id];
    for (Id& a : i.args)
      if (a != kNone) a = value(a);
    return moved_[id] = to_.append(i);
  }

 private:
  const Function& from_;
  Builder& to_;
  std::vector<Id> moved_;
};

}  // namespace

std::optional<ColumnsForm> columns_form(const Function& lowered) {
  Analysis analysis(lowered);
  if (!analysis.sound()) return {};
  return Columns(lowered, analysis).run();
}

Function columns_by_points(const Function& lowered, const ColumnsForm& form) {
  Function out = lowered;
  out.instructions.clear();
  out.blocks = {Block{}};
  Builder b(out);
  Copier extents(lowered, b);
  const Id x = b.emit(Op::coord, Type::i32, {}, 0), place = b.op(Op::band, {x, b.i32(kColumns - 1)});
  const Id last = b.op(Op::iadd, {b.op(Op::isub, {x, place}, kNoWrap), b.i32(kColumns - 1)}, kNoWrap);
  Id holds = b.op(Op::ilt, {last, b.emit(Op::extent, Type::i32, {}, 0)});
  const auto also = [&](Id condition) { holds = b.op(Op::band, {holds, condition}); };
  for (Id extent : form.extents) also(b.op(Op::ilt, {last, extents.value(extent)}));
  for (const ColumnsForm::Stride& s : form.strides) {
    const Id stride = b.emit(Op::stride, out.index_type, {}, uint64_t(s.buffer) * 8 + uint64_t(s.axis));
    also(b.op(Op::ieq, {b.op(Op::band, {stride, b.number(out.index_type, kColumns - 1)}),
                        b.number(out.index_type, 0)}));
  }
  b.if_(
      holds, [&] { b.if_(b.op(Op::ieq, {place, b.i32(0)}), [&] { Copier(form.function, b).body(); }); },
      [&] { Copier(lowered, b).body(); });
  return out;
}

}  // namespace lockstep::compile
