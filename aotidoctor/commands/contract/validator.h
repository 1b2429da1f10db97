#pragma once

// The part of a written C++ validator that is the same for every package.
// One include; C++17; it is compiled with the headers of torch that the program is built with.

#include <ATen/core/Tensor.h>
// torch 2.15 and later.
#if __has_include(<torch/csrc/inductor/aoti_runner/model_container_observer.h>)
#include <torch/csrc/inductor/aoti_runner/model_container_observer.h>
#endif

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace aotidoctor_contract::@PACKAGE@ {

// An input that the compiled code would compute wrongly, or not at all.
struct Problem {
  std::string cause;  // a cause of aotidoctor: `aotidoctor explain input-stride`
  std::string where;
  std::string observed;
  std::string expected;
  std::string text() const { return where + ": observed " + observed + ", expected " + expected + " (" + cause + ")"; }
};

namespace {

using Symbols = std::map<int, int64_t>;
using Size = std::optional<int64_t> (*)(const Symbols&);

struct Line {
  int64_t over, under, constant, parts;
};

struct Dim {
  const char* text;
  int64_t fixed;  // -1: dynamic
  Size size;  // null: not known
  int symbol;  // -1: none, or several
  bool solvable;
  Line line;
  int64_t step, start;  // step 0: none
  int64_t low, high;
};

struct Leaf {
  const char* path;
  int dtype;  // -1: not known
  int64_t rank;  // -1: not known
  std::vector<Dim> dims;
  std::vector<int64_t> strides;  // -1: not constant; empty: not known
  std::vector<Size> stride_sizes;
  int device;  // -1: not known
  bool used;
  int64_t alignment;  // of the first element, in bytes; 0: any
};

inline int64_t _cut(int64_t over, int64_t under) {
  if (under == 0) throw std::domain_error("a size divided by zero");
  return over / under;
}
inline int64_t _mod(int64_t over, int64_t under) { return over - _cut(over, under) * under; }
inline int64_t _floor(int64_t over, int64_t under) {
  return _cut(over, under) - (_mod(over, under) != 0 && (over < 0) != (under < 0) ? 1 : 0);
}
template <typename... T>
int64_t _max(T... sizes) {
  return std::max({static_cast<int64_t>(sizes)...});
}
template <typename... T>
int64_t _min(T... sizes) {
  return std::min({static_cast<int64_t>(sizes)...});
}

// The size where all its symbols are known.
inline std::optional<int64_t> value_of(Size size, const Symbols& symbols) {
  try {
    return size ? size(symbols) : std::nullopt;
  } catch (const std::domain_error&) {
    return std::nullopt;
  }
}

template <typename Values>
std::string listed(const Values& values) {
  std::string text = "(";
  for (size_t at = 0; at < values.size(); ++at) text += (at ? ", " : "") + std::to_string(values[at]);
  return text + ")";
}

inline std::optional<int64_t> root_of(const Dim& dim, int64_t size) {
  if (!dim.solvable) return std::nullopt;
  int64_t top = (size * dim.line.parts - dim.line.constant) * dim.line.under, bottom = dim.line.over * dim.line.parts;
  if (top % bottom != 0) return std::nullopt;
  return top / bottom;
}

// Zeros and ones of one byte: the same bytes whichever of three dtypes they have.
inline bool is_mask(const Leaf& leaf, const at::Tensor& tensor) {
  auto of_one_byte = [](c10::ScalarType type) {
    return type == c10::ScalarType::Bool || type == c10::ScalarType::Byte || type == c10::ScalarType::Char;
  };
  if (!of_one_byte(static_cast<c10::ScalarType>(leaf.dtype)) || !of_one_byte(tensor.scalar_type())) return false;
  if (tensor.scalar_type() == c10::ScalarType::Bool || tensor.numel() == 0) return true;
  return tensor.eq(0).logical_or(tensor.eq(1)).all().item().toBool();
}

inline bool is_one_element(const Leaf& leaf, const at::Tensor& tensor) {
  if (tensor.numel() != 1) return false;
  if (leaf.rank == 0) return true;
  return !leaf.dims.empty() && std::all_of(leaf.dims.begin(), leaf.dims.end(), [](const Dim& dim) { return dim.fixed == 1; });
}

// Layout, device, dtype, lazy bits, rank and static sizes; whether the tensor has the form that was compiled.
inline bool judge_alone(const Leaf& leaf, const at::Tensor& tensor, std::vector<Problem>& found) {
  auto add = [&](const char* cause, const std::string& where, const std::string& observed, const std::string& expected) {
    found.push_back({cause, where, observed, expected});
  };
  if (!tensor.defined()) return add("input-nontensor", leaf.path, "an undefined tensor", "a tensor"), false;
  if (tensor.layout() != c10::kStrided || tensor.is_nested()) {
    return add("input-layout", leaf.path, "a layout without strides", "strided"), false;
  }
  int device = static_cast<int>(tensor.device().type());
  if (leaf.device >= 0 && leaf.device != device) {
    auto name = c10::DeviceTypeName(static_cast<c10::DeviceType>(leaf.device), true);
    return add("input-device", leaf.path, "device " + tensor.device().str(), name), false;
  }
  if (leaf.dtype >= 0 && static_cast<int>(tensor.scalar_type()) != leaf.dtype && !is_mask(leaf, tensor)) {
    auto name = c10::toString(static_cast<c10::ScalarType>(leaf.dtype));
    if (leaf.used) add("input-dtype", leaf.path, c10::toString(tensor.scalar_type()), name);
    return false;
  }
  if (tensor.is_conj()) add("input-lazy-bit", leaf.path, "the conj bit", "resolved values");
  if (tensor.is_neg()) add("input-lazy-bit", leaf.path, "the neg bit", "resolved values");
  if (leaf.rank >= 0 && tensor.dim() != leaf.rank) {
    if (leaf.used && !is_one_element(leaf, tensor)) {
      add("input-rank", leaf.path, std::to_string(tensor.dim()) + " dims", std::to_string(leaf.rank) + " dims");
    }
    return false;
  }
  for (size_t at = 0; at < leaf.dims.size() && at < static_cast<size_t>(tensor.dim()); ++at) {
    if (leaf.dims[at].fixed >= 0 && leaf.dims[at].fixed != tensor.size(at)) {
      auto where = leaf.path + (".shape[" + std::to_string(at) + "]");
      if (leaf.used) add("input-shape", where, std::to_string(tensor.size(at)), std::to_string(leaf.dims[at].fixed));
      return false;
    }
  }
  return true;
}

// The tensor has the sizes that the symbols say: then its strides follow from them.
inline bool agrees(const Leaf& leaf, const at::Tensor& tensor, const Symbols& symbols) {
  for (size_t at = 0; at < leaf.dims.size() && at < static_cast<size_t>(tensor.dim()); ++at) {
    const Dim& dim = leaf.dims[at];
    if (dim.fixed >= 0 || dim.size == nullptr) continue;
    auto root = root_of(dim, tensor.size(at));
    if (dim.symbol >= 0) {
      auto known = symbols.find(dim.symbol);
      if (!root || known == symbols.end() || known->second != *root) return false;
    }
    auto wanted = value_of(dim.size, symbols);
    if (wanted && *wanted != tensor.size(at)) return false;
  }
  return true;
}

inline void judge_stride(const Leaf& leaf, const at::Tensor& tensor, const Symbols& symbols, std::vector<Problem>& found) {
  auto wanted = leaf.strides;
  if (leaf.stride_sizes.size() == wanted.size() && agrees(leaf, tensor, symbols)) {
    for (size_t at = 0; at < wanted.size(); ++at) {
      if (wanted[at] < 0) wanted[at] = value_of(leaf.stride_sizes[at], symbols).value_or(-1);
    }
  }
  bool differs = false;
  for (size_t at = 0; at < wanted.size() && at < static_cast<size_t>(tensor.dim()); ++at) {
    differs = differs || (wanted[at] >= 0 && wanted[at] != tensor.stride(at) && tensor.size(at) != 1);
  }
  if (differs && tensor.numel() != 0 && leaf.used) {
    found.push_back({"input-stride", std::string(leaf.path) + ".stride", listed(tensor.strides()), listed(wanted)});
  }
  int64_t begins = tensor.storage_offset() * static_cast<int64_t>(tensor.itemsize());
  if (leaf.alignment > 0 && begins % leaf.alignment != 0 && leaf.used) {
    auto multiple = "a start at a multiple of " + std::to_string(leaf.alignment) + " bytes";
    auto byte = "byte " + std::to_string(begins) + " of the storage";
    found.push_back({"input-stride", std::string(leaf.path) + ".storage_offset", byte, multiple});
  }
}

struct Seen {
  const Leaf* leaf;
  const at::Tensor* tensor;
};

inline Symbols agreed(const std::vector<Seen>& tensors) {
  std::vector<std::pair<int, std::vector<std::pair<int64_t, int>>>> votes;
  for (const Seen& seen : tensors) {
    for (size_t at = 0; at < seen.leaf->dims.size() && at < static_cast<size_t>(seen.tensor->dim()); ++at) {
      const Dim& dim = seen.leaf->dims[at];
      if (dim.fixed >= 0 || dim.symbol < 0) continue;
      auto root = root_of(dim, seen.tensor->size(at));
      if (!root) continue;
      auto of = std::find_if(votes.begin(), votes.end(), [&](const auto& one) { return one.first == dim.symbol; });
      if (of == votes.end()) of = votes.insert(votes.end(), {dim.symbol, {}});
      auto same = std::find_if(of->second.begin(), of->second.end(), [&](const auto& one) { return one.first == *root; });
      if (same == of->second.end()) of->second.push_back({*root, 1});
      else ++same->second;
    }
  }
  Symbols symbols;
  for (const auto& [symbol, counts] : votes) {
    auto best = std::max_element(counts.begin(), counts.end(), [](auto& a, auto& b) { return a.second < b.second; });
    symbols[symbol] = best->first;
  }
  return symbols;
}

// Dynamic sizes: divisible, agreeing with each other and, where it is asked for, within their range.
inline void judge_sizes(const Seen& seen, const Symbols& symbols, bool strict, std::vector<Problem>& found) {
  for (size_t at = 0; at < seen.leaf->dims.size() && at < static_cast<size_t>(seen.tensor->dim()); ++at) {
    const Dim& dim = seen.leaf->dims[at];
    if (dim.fixed >= 0) continue;
    int64_t size = seen.tensor->size(at);
    auto where = seen.leaf->path + (".shape[" + std::to_string(at) + "]");
    auto wanted = value_of(dim.size, symbols);
    auto add = [&](const char* cause, const std::string& expected) {
      found.push_back({cause, where, std::to_string(size), expected});
    };
    if (dim.size && dim.step != 0 && !root_of(dim, size) && (size - dim.start) % dim.step != 0) {
      add("input-divisibility", "a multiple of " + std::to_string(dim.step) + " (" + dim.text + ")");
    } else if (wanted && *wanted != size && seen.leaf->used) {
      add("input-shape-disagree", std::to_string(*wanted) + " (" + dim.text + ")");
    }
    if (strict && (size < dim.low || size > dim.high)) {
      add("input-range", std::to_string(dim.low) + ".." + std::to_string(dim.high));
    }
  }
}

inline std::vector<Problem> judge(const std::vector<Leaf>& leaves, const std::vector<at::Tensor>& inputs, bool strict) {
  std::vector<Problem> found;
  if (inputs.size() != leaves.size()) {
    found.push_back({"input-count", "inputs", std::to_string(inputs.size()), std::to_string(leaves.size())});
    return found;
  }
  std::vector<Seen> whole;
  for (size_t at = 0; at < inputs.size(); ++at) {
    if (judge_alone(leaves[at], inputs[at], found)) whole.push_back({&leaves[at], &inputs[at]});
  }
  auto symbols = agreed(whole);
  for (const Seen& seen : whole) judge_sizes(seen, symbols, strict, found);
  for (const Seen& seen : whole) judge_stride(*seen.leaf, *seen.tensor, symbols, found);
  return found;
}

inline const std::vector<Leaf>& leaves() {
  static const std::vector<Leaf> all = {
@LEAVES@  };
  return all;
}

}  // namespace

// All problems of a call; empty if it is right. With strict, sizes outside the compiled ranges are also problems.
inline std::vector<Problem> find_problems(const std::vector<at::Tensor>& inputs, bool strict = false) {
  return judge(leaves(), inputs, strict);
}

// Throws std::invalid_argument for a call that the compiled code would compute wrongly, or not at all.
inline void validate_inputs(const std::vector<at::Tensor>& inputs, bool strict = false) {
  auto found = find_problems(inputs, strict);
  if (!found.empty()) throw std::invalid_argument(found.front().text());
}

#if __has_include(<torch/csrc/inductor/aoti_runner/model_container_observer.h>)
// Calls, failures and time of each event of a runner: set_observer(std::make_shared<Observer>()), once for each runner.
class Observer : public torch::inductor::AOTIModelContainerObserver {
 public:
  using Event = torch::inductor::AOTIContainerEvent;
  using Context = torch::inductor::AOTIObserverContext;
  struct Sums {
    std::atomic<int64_t> calls{0}, failures{0}, nanoseconds{0};
  };

  const Sums& sums(Event event) const { return all_[place(event)]; }

  void on_begin(Event event, const Context&) noexcept override { began()[place(event)] = now(); }

  void on_end(Event event, const Context&, bool succeeded) noexcept override {
    Sums& sums = all_[place(event)];
    sums.nanoseconds += now() - began()[place(event)];
    sums.calls += 1;
    if (!succeeded) sums.failures += 1;
  }

 private:
  static constexpr size_t kEvents = 16;

  static size_t place(Event event) { return std::min(static_cast<size_t>(event), kEvents - 1); }

  static int64_t now() {
    return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
  }

  static std::array<int64_t, kEvents>& began() {
    thread_local std::array<int64_t, kEvents> times{};
    return times;
  }

  std::array<Sums, kEvents> all_;
};
#endif

}  // namespace aotidoctor_contract::@PACKAGE@
