"""NORFAB: a broker, its workers and its clients. The engines here are pure: values in, actions out."""
