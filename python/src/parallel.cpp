// Groups of ranks: processes of a launcher, and processes whose messages a Python object moves.
#include "bind.hpp"
#include "parallel/transports/transport.hpp"

namespace lockstep::python {
namespace {

/// Messages of an object with `name`, `rank`, `size`, `send(to, tag, bytes)` and `receive(from, tag, seconds)`, which gives
/// bytes, or None where none have arrived. Its errors end the call that they come from.
class MessagesOfPython final : public parallel::Transport {
 public:
  explicit MessagesOfPython(const nb::object& messages)
      : name_(nb::cast<std::string>(messages.attr("name"))),
        rank_(nb::cast<int>(messages.attr("rank"))),
        size_(nb::cast<int>(messages.attr("size"))),
        messages_(keep<PyObject>(messages)) {}
  std::string name() const override { return name_; }
  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void send(int to, parallel::Tag tag, parallel::Bytes data) override {
    const nb::gil_scoped_acquire lock;
    nb::handle(messages_.get()).attr("send")(to, int(tag), nb::bytes(data.data(), data.size()));
  }
  std::optional<parallel::Message> wait(int from, parallel::Tag tag, double limit_s) override {
    if (from < 0) refuse();
    const nb::gil_scoped_acquire lock;
    const nb::object found = nb::handle(messages_.get()).attr("receive")(from, int(tag), limit_s);
    if (found.is_none()) return {};
    const auto bytes = nb::cast<nb::bytes>(found);
    return parallel::Message{from, parallel::bytes_of(std::string_view(bytes.c_str(), bytes.size()))};
  }
  std::optional<parallel::Message> poll(int /*from*/, parallel::Tag /*tag*/) override { refuse(); }
  bool all_sent() override { return true; }

 private:
  [[noreturn]] void refuse() const {
    throw UnsupportedError("work that is assigned on demand", name_, "ranks of mpirun, or threads");
  }
  const std::string name_;
  const int rank_, size_;
  const std::shared_ptr<PyObject> messages_;
};

parallel::Group group_of_messages(const nb::object& messages, double wait_limit_s) {
  auto transport = std::make_unique<MessagesOfPython>(messages);
  return freely([&] { return parallel::Group(std::move(transport), {.wait_limit_s = wait_limit_s}); });
}

}  // namespace

void bind_parallel(nb::module_& module) {
  using Free = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<parallel::Group>(module, "Group")
      .def_prop_ro("rank", &parallel::Group::rank)
      .def_prop_ro("size", &parallel::Group::size)
      .def_prop_ro("transport", &parallel::Group::transport)
      .def("barrier", &parallel::Group::barrier, Free())
      .def("expect_same",
           [](const parallel::Group& g, const std::string& what, const std::string& text) {
             const nb::gil_scoped_release free;
             g.expect_same(what, text);
           })
      .def(
          "sum",
          [](const parallel::Group& g, const OpenDevice& open, int64_t parts,
             const std::optional<Buffer>& mine, const Buffer& total) {
            const nb::gil_scoped_release free;
            g.sum(open.device(), parts, mine.value_or(Buffer()), total);
          },
          nb::arg("device"), nb::arg("parts"), nb::arg("mine").none(), nb::arg("total"))
      .def("device",
           [](const parallel::Group& g, const std::string& names, bool share) {
             const nb::gil_scoped_release free;
             return parallel::device_of_rank(g, names, share);
           })
      .def("fail",
           [](const parallel::Group& g, const std::string& fault) {
             const nb::gil_scoped_release free;
             parallel::expect_agreement(g, {}, fault.empty() ? "an error" : fault);
           })
      .def("end", &parallel::end_group, Free());
  module.def("launched_group", [](double wait_limit_s) {
    const nb::gil_scoped_release free;
    return parallel::launched({.wait_limit_s = wait_limit_s});
  });
  module.def("group_of_messages", &group_of_messages);
  module.def("abort_launch", &parallel::abort_launch);
}

}  // namespace lockstep::python
