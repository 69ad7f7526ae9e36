# Two commands are enough: `make run` to see it work, `make test` to prove it. `make help` lists the rest.

GO       ?= go
BIN      := $(CURDIR)/bin
EXAMPLE  ?= platform
ARGS     ?=
REPLICAS ?=
CHARTS   ?=
PKGS     ?= ./...

GOLANGCI_LINT_VERSION  := v2.15.0
CONTROLLER_GEN_VERSION := v0.23.0

# Compilers, control planes and tests collect garbage a third as often: memory is cheaper than time, but not where that is measured.
export GOGC ?= 300
bench: export GOGC = 100

# The race detector needs cgo and a C compiler. It makes everything slower, so that make test has it only where goroutines share memory. Two never have it:
# the model of the slots, whose histories are all arithmetic in one goroutine, and the alerts, whose operators have to keep up with a hurried Prometheus.
RACE_ALL := $(if $(shell command -v $(shell $(GO) env CC) 2>/dev/null),./... !./operator/internal/slots !./examples/quickstart/alerts)
RACE     := $(if $(RACE_ALL),./context/... ./framework/... ./informer/... ./operator ./operator/inspector ./operator/natscontroller/... \
	./resource/deployment ./resource/natsresource ./resource/retryresource ./resource/statemanager/target)

# Builds a program, and says every few seconds how far that is.
GOBUILD = $(GO) run ./operator/operatortest/gobuild

# One control plane is started for the tests of all packages.
SUITE = $(BIN)/testenv -- $(GO) run ./operator/operatortest/suite
SLICE ?=
FOR   ?= 30m
LOAD  ?=

DEMOS := $(patsubst examples/%/cmd/demo,%,$(wildcard examples/*/cmd/demo))

.DEFAULT_GOAL := help
.PHONY: help run test test-all test-charts flaky bench lint generate controlplane

help: ## Show this list.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo
	@echo "  EXAMPLE=name picks the example of make run, ONCE=1 ends it when it has converged, ARGS=--help says what else it takes."
	@echo "  REPLICAS=3 has the operator of quickstart run as replicas that share the work, and nats-controller on three servers."
	@echo "  PKGS=./framework/... picks the packages of make test, test-all and flaky."

run: controlplane ## Run an example on real control planes; Ctrl-C ends everything.
	@test -d examples/$(EXAMPLE)/cmd/demo || { echo "there is no demo of an example '$(EXAMPLE)'; there are: $(DEMOS)"; exit 2; }
	@$(GOBUILD) -o $(BIN)/$(EXAMPLE)-demo ./examples/$(EXAMPLE)/cmd/demo
	@exec $(BIN)/$(EXAMPLE)-demo $(if $(ONCE),--once) $(if $(REPLICAS),--replicas=$(REPLICAS)) $(ARGS)

test: controlplane ## Test every promise, with samples of what takes long: minutes.
	$(SUITE) -short -race '$(RACE)' $(PKGS)

test-all: controlplane $(BIN)/controller-gen-$(CONTROLLER_GEN_VERSION) ## Test everything: every crash point, every case, all with -race. SLICE=2/4 runs a quarter.
	$(SUITE) -race '$(RACE_ALL)' -slice '$(SLICE)' $(PKGS)

test-charts: controlplane ## Compare what becomes of charts of yours with Helm, before you migrate: CHARTS=DIR.
	@test -n "$(CHARTS)" || { echo "say which charts: make test-charts CHARTS=DIR (operator/statemanagers/charttest/doc.go says how DIR looks)"; exit 2; }
	@$(GOBUILD) -o $(BIN)/charttest ./operator/statemanagers/charttest
	@exec $(BIN)/charttest $(ARGS) "$(CHARTS)"

flaky: controlplane ## Run the tests again and again for FOR=30m beside a load, and count what fails.
	$(SUITE) -short -race '$(RACE)' -flaky $(FOR) $(if $(LOAD),-load $(LOAD)) $(PKGS)

bench: controlplane ## Measure, as ratios to what others reach in the same run.
	$(BIN)/testenv -- $(GO) run ./operator/bench $(ARGS)

lint: $(BIN)/golangci-lint-$(GOLANGCI_LINT_VERSION) ## Look for mistakes, and for generated files that are stale.
	$< run --allow-parallel-runners ./...
	cd operator/operatortest/controlplane && $(GO) vet ./...
	cd examples/database/controllerruntime && $(GO) vet ./... && $(GO) mod tidy -diff
	$(GO) mod tidy -diff
	$(MAKE) --no-print-directory generate
	@stale=$$(git status --porcelain -- $(GENERATED)); \
	if [ -n "$$stale" ]; then echo "generated files are stale; commit what make generate has made:"; echo "$$stale"; exit 1; fi

GENERATED := '*zz_generated*' '*/crd/*.yaml' operator/operatortest/controlplane.txtar docs/oncall

generate: $(BIN)/controller-gen-$(CONTROLLER_GEN_VERSION) ## Write deep copies, CRDs, alerts, the dashboard and embedded sources anew.
	$< object crd:maxDescLen=400 paths=./examples/quickstart/v1alpha1 output:crd:dir=examples/quickstart/v1alpha1/crd
	$< object crd:maxDescLen=400 paths=./examples/database/v1alpha1 output:crd:dir=examples/database/v1alpha1/crd
	$< object crd:maxDescLen=400 paths=./resource/serviceset/v1alpha1 output:crd:dir=resource/serviceset/v1alpha1/crd
	$< object crd:maxDescLen=400 paths=./operator/serviceprovider/v1alpha1 output:crd:dir=operator/serviceprovider/v1alpha1/crd
	$< object crd:maxDescLen=400 paths=./examples/serviceprovider/v1alpha1 output:crd:dir=examples/serviceprovider/v1alpha1/crd
	$< object crd:maxDescLen=400 paths=./operator/machines/v1alpha1 output:crd:dir=operator/machines/v1alpha1/crd
	$< object paths=./operator/serviceprovider
	$< object paths=./resource/statemanager/sveltos/v1beta1
	$< object paths=./resource/deployment/api
	$(GO) generate ./...

controlplane: ## Build the control plane into the user's cache folder, once, and link it to bin/controlplane.
	@$(GOBUILD) -o $(BIN)/testenv ./operator/operatortest/testenv
	@$(BIN)/testenv -build -o $(BIN)/controlplane

$(BIN)/golangci-lint-$(GOLANGCI_LINT_VERSION):
	GOBIN=$(BIN) $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)
	mv $(BIN)/golangci-lint $@

$(BIN)/controller-gen-$(CONTROLLER_GEN_VERSION):
	GOBIN=$(BIN) $(GO) install sigs.k8s.io/controller-tools/cmd/controller-gen@$(CONTROLLER_GEN_VERSION)
	mv $(BIN)/controller-gen $@
