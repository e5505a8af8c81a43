#pragma once
#include "tests/kernels/cuda_on_host/cuda_runtime.h"
