//! Tests over a driver of a few lines, which writes down what it is asked and answers what it is told to.

mod errors;
mod fake;
mod objects;
mod sources;
