#include "solve/datasets/expression.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numbers>
#include <utility>

namespace lockstep::solve {

using autodiff::Graph;
using autodiff::Value;

struct Expression::Node {
  enum class Kind : uint8_t { number, name, negate, add, subtract, multiply, divide, power, call };
  Kind kind = Kind::number;
  double number = 0;
  int index = 0;  // of the name, or of the function in kFunctions
  std::vector<std::shared_ptr<const Node>> arguments;
};

namespace {

using Node = Expression::Node;
using Pointer = std::shared_ptr<const Node>;
constexpr int kDeepest = 500;        // nested brackets and signs
constexpr size_t kLongest = 10'000;  // characters; building recurses along chains of operators

struct Function {
  const char* name;
  int arity;
  Value (*unary)(const Value&);
  Value (*binary)(const Value&, const Value&);
};

#define LOCKSTEP_UNARY(text, function)                                     \
  Function {                                                               \
    text, 1, [](const Value& a) { return autodiff::function(a); }, nullptr \
  }
#define LOCKSTEP_BINARY(text, function)                                                       \
  Function {                                                                                  \
    text, 2, nullptr, [](const Value& a, const Value& b) { return autodiff::function(a, b); } \
  }
const Function kFunctions[] = {
    LOCKSTEP_UNARY("exp", exp),      LOCKSTEP_UNARY("log", log),     LOCKSTEP_UNARY("ln", log),
    LOCKSTEP_UNARY("log2", log2),    LOCKSTEP_UNARY("log10", log10), LOCKSTEP_UNARY("log1p", log1p),
    LOCKSTEP_UNARY("expm1", expm1),  LOCKSTEP_UNARY("sqrt", sqrt),   LOCKSTEP_UNARY("cbrt", cbrt),
    LOCKSTEP_UNARY("abs", abs),      LOCKSTEP_UNARY("sign", sign),   LOCKSTEP_UNARY("sin", sin),
    LOCKSTEP_UNARY("cos", cos),      LOCKSTEP_UNARY("tan", tan),     LOCKSTEP_UNARY("asin", asin),
    LOCKSTEP_UNARY("arcsin", asin),  LOCKSTEP_UNARY("acos", acos),   LOCKSTEP_UNARY("arccos", acos),
    LOCKSTEP_UNARY("atan", atan),    LOCKSTEP_UNARY("arctan", atan), LOCKSTEP_UNARY("sinh", sinh),
    LOCKSTEP_UNARY("cosh", cosh),    LOCKSTEP_UNARY("tanh", tanh),   LOCKSTEP_UNARY("erf", erf),
    LOCKSTEP_UNARY("floor", floor),  LOCKSTEP_UNARY("ceil", ceil),   LOCKSTEP_BINARY("atan2", atan2),
    LOCKSTEP_BINARY("pow", pow),     LOCKSTEP_BINARY("min", min),    LOCKSTEP_BINARY("max", max),
    LOCKSTEP_BINARY("hypot", hypot), LOCKSTEP_BINARY("mod", fmod),
};
#undef LOCKSTEP_UNARY
#undef LOCKSTEP_BINARY

Pointer make(Node::Kind kind, std::vector<Pointer> arguments) {
  auto node = std::make_shared<Node>();
  node->kind = kind;
  node->arguments = std::move(arguments);
  return node;
}

/// Recursive descent: sum of products of signed factors; a power binds its base tighter than a sign.
class Parser {
 public:
  Parser(std::string_view text, std::string_view where, std::vector<std::string>& names)
      : text_(text), where_(where), names_(names) {}

  Pointer whole() {
    if (text_.size() > kLongest)
      fail(fmt::format("{} characters", text_.size()), fmt::format("at most {}", kLongest));
    Pointer node = sum();
    skip_space();
    if (at_ < text_.size()) fail(fmt::format("\"{}\"", text_[at_]), "an operator or the end of the formula");
    return node;
  }

 private:
  struct Deeper {
    explicit Deeper(Parser& parser) : parser_(parser) {
      if (++parser_.depth_ > kDeepest)
        parser_.fail("formula too deep", "at most 500 nested brackets or signs");
    }
    ~Deeper() { --parser_.depth_; }
    Parser& parser_;
  };

  [[noreturn]] void fail(const std::string& what, const std::string& expected) const {
    constexpr size_t kShown = 120;
    std::string shown(text_.substr(0, kShown));
    for (char& c : shown)
      if (static_cast<unsigned char>(c) < ' ') c = ' ';
    throw InputError(fmt::format("{} in \"{}{}\"", what, shown, text_.size() > kShown ? "…" : ""),
                     fmt::format("{}, column {}", where_, at_ + 1), expected);
  }
  void skip_space() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r'))
      ++at_;
  }
  char peek() {
    skip_space();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  bool take_power() {
    if (take('^')) return true;
    if (peek() == '*' && text_.substr(at_, 2) == "**") {
      at_ += 2;
      return true;
    }
    return false;
  }

  Pointer sum() {
    Pointer left = product();
    for (;;) {
      if (take('+'))
        left = make(Node::Kind::add, {left, product()});
      else if (take('-'))
        left = make(Node::Kind::subtract, {left, product()});
      else
        return left;
    }
  }
  Pointer product() {
    Pointer left = factor();
    for (;;) {
      if (peek() == '*' && text_.substr(at_, 2) != "**") {
        ++at_;
        left = make(Node::Kind::multiply, {left, factor()});
      } else if (take('/')) {
        left = make(Node::Kind::divide, {left, factor()});
      } else {
        return left;
      }
    }
  }
  Pointer factor() {
    const Deeper deeper(*this);
    if (take('-')) return make(Node::Kind::negate, {factor()});
    if (take('+')) return factor();
    Pointer base = atom();
    if (take_power()) return make(Node::Kind::power, {base, factor()});
    return base;
  }
  Pointer bracketed(char close) {
    Pointer inner = sum();
    if (!take(close))
      fail(at_ < text_.size() ? fmt::format("\"{}\"", text_[at_]) : "end of the formula",
           fmt::format("\"{}\"", close));
    return inner;
  }
  Pointer atom() {
    const char c = peek();
    if (c == '(') return ++at_, bracketed(')');
    if (c == '[') return ++at_, bracketed(']');
    if ((c >= '0' && c <= '9') || c == '.') return number();
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_') return name();
    fail(c ? fmt::format("\"{}\"", c) : "end of the formula", "a number, a name or an opening bracket");
  }
  Pointer number() {
    double value = 0;
    const char* first = text_.data() + at_;
    const auto [end, error] = std::from_chars(first, text_.data() + text_.size(), value);
    if (error != std::errc() || !std::isfinite(value)) fail("number", "digits, within the range of f64");
    at_ += size_t(end - first);
    auto node = std::make_shared<Node>();
    node->number = value;
    return node;
  }
  Pointer name() {
    const size_t first = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_'))
      ++at_;
    const std::string word(text_.substr(first, at_ - first));
    const char next = peek();
    if (next == '(' || next == '[') return call(word, first);
    auto node = std::make_shared<Node>();
    if (word == "pi") {
      node->number = std::numbers::pi;
      return node;
    }
    node->kind = Node::Kind::name;
    const auto known = std::find(names_.begin(), names_.end(), word);
    node->index = int(known - names_.begin());
    if (known == names_.end()) names_.push_back(word);
    return node;
  }
  Pointer call(const std::string& word, size_t first) {
    std::string lower = word;
    for (char& c : lower) c = char(std::tolower(static_cast<unsigned char>(c)));
    int index = 0;
    for (; index < int(std::size(kFunctions)); ++index)
      if (lower == kFunctions[index].name) break;
    if (index == int(std::size(kFunctions))) {
      at_ = first;
      std::string all;
      for (const Function& f : kFunctions) all += fmt::format("{}{}", all.empty() ? "" : ", ", f.name);
      fail(fmt::format("unknown function \"{}\"", word),
           fmt::format("one of {}; or * before a bracket", all));
    }
    auto node = std::make_shared<Node>();
    node->kind = Node::Kind::call;
    node->index = index;
    const char close = peek() == '(' ? ')' : ']';
    ++at_;
    do node->arguments.push_back(sum());
    while (take(','));
    if (!take(close))
      fail(at_ < text_.size() ? fmt::format("\"{}\"", text_[at_]) : "end of the formula",
           fmt::format("\",\" or \"{}\"", close));
    if (int(node->arguments.size()) != kFunctions[index].arity) {
      at_ = first;
      fail(fmt::format("{} with {} arguments", word, node->arguments.size()),
           fmt::format("{}", kFunctions[index].arity));
    }
    return node;
  }

  std::string_view text_, where_;
  std::vector<std::string>& names_;
  size_t at_ = 0;
  int depth_ = 0;
};

Value build_node(const Node& node, Graph& graph, const std::vector<Value>& leaves) {
  const auto argument = [&](size_t k) { return build_node(*node.arguments[k], graph, leaves); };
  switch (node.kind) {
    case Node::Kind::number: return graph.constant(node.number);
    case Node::Kind::name: return leaves[size_t(node.index)];
    case Node::Kind::negate: return -argument(0);
    case Node::Kind::add: return argument(0) + argument(1);
    case Node::Kind::subtract: return argument(0) - argument(1);
    case Node::Kind::multiply: return argument(0) * argument(1);
    case Node::Kind::divide: return argument(0) / argument(1);
    case Node::Kind::power: return autodiff::pow(argument(0), argument(1));
    case Node::Kind::call: {
      const Function& function = kFunctions[node.index];
      return function.arity == 1 ? function.unary(argument(0)) : function.binary(argument(0), argument(1));
    }
  }
  throw InternalError("formula", "build", "a kind of node");
}

}  // namespace

Expression Expression::parse(std::string_view text, std::string_view where) {
  Expression out;
  out.text_ = std::string(text);
  out.root_ = Parser(out.text_, where, out.names_).whole();
  return out;
}

Value Expression::build(Graph& graph, const std::function<Value(const std::string&)>& leaf) const {
  std::vector<Value> leaves;
  for (const std::string& name : names_) leaves.push_back(leaf(name));
  return build_node(*root_, graph, leaves);
}

double Expression::evaluate(const std::map<std::string, double>& values) const {
  Graph graph;
  std::vector<double> leaves;
  const Value value = build(graph, [&](const std::string& name) {
    const auto found = values.find(name);
    if (found == values.end())
      throw InputError(fmt::format("no value of {}", name), text_, "a value for each name");
    leaves.push_back(found->second);
    return graph.variable(name);
  });
  return autodiff::evaluate<double>(value, leaves);
}

}  // namespace lockstep::solve
