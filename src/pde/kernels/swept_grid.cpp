#include "pde/kernels/swept_grid.hpp"

namespace lockstep::pde {

SweptGrid::SweptGrid(Parameters& p, const Discretisation& of, const KernelForm& form)
    : d(of),
      cells{p.scalar<i32>("nx"), p.scalar<i32>("ny"), p.scalar<i32>("nz")},
      chunk(p.scalar<i32>("chunk")) {
  if (form.batch) chunks = p.scalar<i32>("chunks");
  if (form.part) first = p.scalar<i32>("first_plane"), end = p.scalar<i32>("end_plane");
  plane_cells = cells[0].offset() * cells[1].offset();
  volume = plane_cells * cells[2].offset();
}

void set_sweep(Arguments& a, const Discretisation& d, int64_t chunk) {
  const auto& n = d.mesh.cells;
  a.set("nx", n[0]).set("ny", n[1]).set("nz", n[2]);
  a.set("chunk", chunk).set("chunks", (n[2] + chunk - 1) / chunk);
}

Index SweptGrid::inside(int axis, const Index& c) const {
  const Index& n = cells[size_t(axis)];
  return d.wraps[size_t(axis)] ? (c % n + n) % n : clamp_index(c, n);
}

Index SweptGrid::inside_plane(const Index& z) const {
  const Index& n = cells[2];
  if (!d.wraps[2]) return clamp_index(z, n);
  const Index up = select(z < 0, z + n, z);
  return select(up < n, up, up - n);
}

Chunk::Chunk(const SweptGrid& grid, const Index& number) {
  if (!grid.chunks.empty()) member = number / grid.chunks;
  begin = (member.empty() ? number : number % grid.chunks) * grid.chunk;
  if (!grid.first.empty()) begin = begin + grid.first;
  end = min(begin + grid.chunk, grid.end.empty() ? grid.cells[2] : grid.end);
}

Index Chunk::member_plane(const SweptGrid& grid, const Index& plane) const {
  return member.empty() ? plane : member * grid.cells[2] + plane;
}

Index field_offset(const SweptGrid& grid, const Chunk& chunk, const KernelForm& form, int field_index,
                   int component, const Index& plane, const Index& in_plane) {
  const Plan& plan = *grid.d.plan;
  if (form.rows) {
    const Index cell = chunk.member_plane(grid, plane).offset() * grid.plane_cells + in_plane;
    const int column = FieldArrays::column(plan, field_index, component);
    const Index row = cell * Index(FieldArrays::width(plan));
    return column == 0 ? row : row + Index(column);
  }
  Index base = plane.offset() * grid.plane_cells;
  if (!chunk.member.empty()) {
    const Index first = chunk.member * plan.fields[size_t(field_index)].components;
    base = base + grid.volume * (first + component).offset();
  } else if (component != 0) {
    base = base + grid.volume * Index(component).offset();
  }
  return base + in_plane;
}

StagePlace::StagePlace(const SweptGrid& grid, const Index& lane, int from, int lanes, int copies, int width,
                       int wide, const Index& column, const Index& row, const std::array<Index, 2>& first) {
  const Index x = first[0] + column, y = grid.inside(1, first[1] + row);
  place = row * width + column;
  offset = grid.in_plane(grid.inside(0, x), y);
  if (from + lanes > copies) here = lane + from < copies;
  if (wide > 1 && !grid.d.wraps[0]) beyond = x < 0 || grid.cells[0] <= x;
}

void StagePlace::run(const std::function<void(bool)>& work) const {
  const auto either = [&] {
    if (beyond)
      if_(*beyond, [&] { work(true); }, [&] { work(false); });
    else
      work(false);
  };
  if (here)
    if_(*here, either);
  else
    either();
}

void Staging::bring(const AnyGrid& from, const Index& to, const Index& offset, int wide, bool beyond) const {
  for (int k = 0; k < (beyond ? wide : 1); ++k) {
    if (direct_)
      from.copy_async(array_, to + k, offset, beyond ? 1 : wide);
    else
      array_.store(to + k, from.load_at(offset));
  }
}

}  // namespace lockstep::pde
