// A server in miniature: it loads a package through the C++ API, answers one request, and prints what it answered.
//
//   server PACKAGE REQUEST     REQUEST: ids64 ids32 rows half rows1 linear
//   server --catch PACKAGE REQUEST     the exception is logged, and the exit status is 3
#include <ATen/ATen.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>

#include <cmath>
#include <iostream>
#include <string>
#include <vector>

namespace {

at::Tensor request(const std::string& name) {
  if (name == "ids64") return at::arange(8, at::kLong);
  if (name == "ids32") return at::arange(1, 9, at::kInt);
  if (name == "linear") return at::ones({4, 16}, at::kFloat);
  return at::ones({16, 16}, name == "half" ? at::kHalf : at::kFloat);
}

int answer(const std::string& package, const std::string& name) {
  torch::inductor::AOTIModelPackageLoader loader(package, "model");
  std::vector<at::Tensor> inputs{request(name)};
  if (name == "rows" || name == "half") inputs.push_back(inputs[0].clone());
  const auto outputs = loader.run(inputs);
  std::cout << "answer " << outputs[0].sizes() << std::endl;
  // What a client would notice: ones times two plus ones times three are fives.
  if ((name == "rows" || name == "half") && !at::allclose(outputs[0], at::full_like(outputs[0], 5.0))) {
    std::cerr << "the answer is wrong" << std::endl;
    return 4;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const bool caught = std::string(argv[1]) == "--catch";
  const std::string package = argv[1 + caught], name = argv[2 + caught];
  std::cerr << "serving " << package << std::endl;
  if (!caught) return answer(package, name);
  try {
    return answer(package, name);
  } catch (const std::exception& error) {
    std::cerr << "[error] request failed: " << error.what() << std::endl;
    return 3;
  }
}
