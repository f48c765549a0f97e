# A thin front for tools/dev.sh and CMake's presets.
.PHONY: help serve test build lint bench-peers clean
.DEFAULT_GOAL := help

help:
	@echo "make serve   set up, build, fetch the default model, serve it on 127.0.0.1:8080"
	@echo "             (ARGS=\"gemma3:270m --port 9000\" passes arguments to wok serve)"
	@echo "make test    set up, build, lint, run every test"
	@echo "make build   set up, build; the program is build/release/wok"
	@echo "make lint    format, include direction, weak symbols, file length, clang-tidy"
	@echo "make bench-peers"
	@echo "             wok beside llama.cpp and OpenVINO on the same files; writes bench/results and"
	@echo "             docs/images (ARGS=\"--models smollm2 --rounds 2 --steps 32\" measures less;"
	@echo "             ARGS=--served puts users on the three as servers)"
	@echo "make clean   remove build/ (pulled models stay; see wok rm)"
	@echo "More: tools/dev.sh help"

serve:
	@tools/dev.sh serve $(ARGS)

test:
	@tools/dev.sh test

build:
	@tools/dev.sh setup
	@tools/dev.sh build

lint:
	@tools/dev.sh build
	@tools/dev.sh lint

bench-peers:
	@tools/dev.sh bench-peers $(ARGS)

clean:
	rm -rf build
