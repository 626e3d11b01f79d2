// thalweg.h: everything a user of the C++ library needs.
#pragma once

#include <thalweg/attributes.h>
#include <thalweg/autograd.h>
#include <thalweg/device.h>
#include <thalweg/dtype.h>
#include <thalweg/engine.h>
#include <thalweg/errors.h>
#include <thalweg/generator.h>
#include <thalweg/gradient.h>
#include <thalweg/kernel.h>
#include <thalweg/node.h>
#include <thalweg/op.h>
#include <thalweg/scalar.h>
#include <thalweg/shape.h>
#include <thalweg/tensor.h>
