# `make help` lists all targets.

GO       ?= go
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
FUZZTIME ?= 30s
SOAK     ?= 2h

# RACE=-race makes tests use the race detector. It needs a C compiler, and the tests take about half as long again.
RACE ?=

# All Go commands use the same flags, so that each dependency is compiled once for tests, programs and the landscape. Only the programs of
# `make build` record the commit: others would be linked again for each commit.
export GOFLAGS     := -trimpath -buildvcs=false $(filter-out -trimpath -buildvcs=%,$(GOFLAGS))
export CGO_ENABLED := 0

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

.PHONY: help
help: ## List the targets.
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z-]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ Build and run

.PHONY: build
build: ## Build all programs: bin/resource-manager, bin/apiserver, bin/controller-manager, bin/scheduler, bin/admission-controller, bin/operator, bin/gardenlet, bin/etcd-operator, bin/etcd-member, bin/node-agent, bin/tunnel, bin/gateway, bin/discovery-server, bin/kubectl-mr.
	$(GO) build -buildvcs=auto -ldflags '-X main.version=$(VERSION)' -o bin/ ./cmd/resource-manager ./cmd/apiserver ./cmd/controller-manager ./cmd/scheduler ./cmd/admission-controller ./cmd/operator ./cmd/gardenlet \
		./cmd/etcd-operator ./cmd/etcd-member ./cmd/node-agent ./cmd/tunnel ./cmd/gateway ./cmd/discovery-server ./cmd/kubectl-mr
	@ln -sf kubectl-mr bin/kubectl_complete-mr

.PHONY: controlplane
controlplane: ## Build a Kubernetes control plane into bin/ (about 5-15 minutes the first time).
	@GO='$(GO)' hack/build-controlplane.sh

.PHONY: controlplane-older
controlplane-older: ## Build the programs of control planes and nodes of Kubernetes VERSION, such as v1.36.0, into bin/kubernetes/VERSION, for update tests.
	@GO='$(GO)' hack/build-older.sh '$(VERSION)'

.PHONY: demo
demo: controlplane build bin/demo ## Start a garden and a Seed on this machine, create a cluster in it, and show a tour (docs/demo.md).
	@bin/demo up
	@bin/demo tour

.PHONY: down
down: bin/demo ## Stop what `make demo` started.
	@bin/demo down

.PHONY: bin/demo
bin/demo:
	@$(GO) build -o $@ ./hack/demo

.PHONY: clean
clean: ## Stop what `make demo` and `make base-cluster` started, and remove bin/ and .run/.
	@[ ! -x bin/demo ] || bin/demo down
	@[ ! -x bin/landscape/landscape ] || bin/landscape/landscape down
	rm -rf bin .run

##@ Landscape

# Flags for hack/landscape, for example --distribution or --block 10.120.0.0/16: docs/landscape.md.
LANDSCAPEFLAGS ?=

.PHONY: landscape
landscape: controlplane build bin/landscape/landscape ## Run a fleet on this machine, with real containers: a garden, a seed and two Shoots, one with nodes (Linux, root; docs/landscape.md).
	@bin/landscape/landscape --install-packages $(LANDSCAPEFLAGS) fleet

.PHONY: landscape-garden
landscape-garden: controlplane build bin/landscape/landscape ## Run a Garden that the operator installs on this machine, with a Seed and a Shoot in it (Linux, root; docs/landscape.md).
	@bin/landscape/landscape garden --install-packages $(LANDSCAPEFLAGS)

.PHONY: landscape-down
landscape-down: base-cluster-down ## Remove everything that `make landscape` created.

.PHONY: base-cluster
base-cluster: controlplane bin/landscape/landscape ## Run a real Kubernetes cluster on this machine, with real containers (Linux, root; docs/landscape.md).
	@bin/landscape/landscape --install-packages $(LANDSCAPEFLAGS) up

.PHONY: base-cluster-down
base-cluster-down: bin/landscape/landscape ## Remove the base cluster completely.
	@bin/landscape/landscape $(LANDSCAPEFLAGS) down

.PHONY: landscape-push
landscape-push: bin/landscape/landscape ## Rebuild the image C, for example C=resource-manager, and roll it out in the base cluster.
	@bin/landscape/landscape $(LANDSCAPEFLAGS) push '$(C)'

.PHONY: machine-image
machine-image: controlplane bin/landscape/landscape ## Build the image of machines, and export it as a root file system to bin/landscape/machine.tar.gz.
	@bin/landscape/landscape --install-packages $(LANDSCAPEFLAGS) machine-image --export bin/landscape/machine.tar.gz

.PHONY: test-landscape
test-landscape: controlplane build bin/landscape/landscape ## Test with real containers on a base cluster (LANDSCAPE selects tests, TESTFLAGS; docs/landscape.md).
	@bin/landscape/landscape --install-packages check
	$(GO) test ./test/landscape/e2e -count 1 -timeout 30m -v -run '$(or $(LANDSCAPE),.)' -landscape $(TESTFLAGS)

# Flags for hack/conformance, for example --cluster base, --parallel 6, --timeout 45m, --keep or -o json: docs/conformance.md.
CONFORMANCEFLAGS ?=

.PHONY: conformance
conformance: controlplane bin/conformance/conformance ## Run Kubernetes' conformance tests on a Shoot with nodes; repeat it to continue (CONFORMANCE selects tests, CONFORMANCEFLAGS, docs/conformance.md).
	@bin/conformance/conformance --install-packages --focus '$(CONFORMANCE)' $(CONFORMANCEFLAGS)

.PHONY: bin/conformance/conformance
bin/conformance/conformance:
	@$(GO) build -ldflags '-s -w' -o $@ ./hack/conformance

.PHONY: bin/landscape/landscape
bin/landscape/landscape:
	@mkdir -p bin/landscape && $(GO) build -ldflags '-s -w' -o bin/landscape/.own/ ./hack/landscape && \
		rm -f $@ && ln bin/landscape/.own/landscape $@

##@ Check

# The number of packages that are tested in parallel. Many tests wait for programs, so it exceeds the number of processors.
TESTED_AT_ONCE ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)

# The command of the tests of packages. It prints the slowest packages, and writes the times of all to bin/test-times.txt. With NIGHTLY=true, no
# result is taken from the cache.
TEST_PACKAGES = $(if $(RACE),CGO_ENABLED=1 )$(GO) run ./hack/testtimes $(GO) test -json -vet off $(RACE) $(if $(NIGHTLY),-count 1) \
	-p $(TESTED_AT_ONCE) -parallel 6 -timeout 45m

.PHONY: test
test: controlplane ## Run all tests, with a real control plane (NIGHTLY=true takes no result from the cache).
	@echo "Running all tests. This takes about 20 minutes on two processors, less if results are in the cache."
	$(TEST_PACKAGES) ./test/shoot ./test/seed ./test/integration ./test/health ./... # the longest packages first; make lint has the checks of go vet

.PHONY: test-quick
test-quick: ## Run all tests of the packages that start no control plane. make test takes their results from the cache.
	@mkdir -p bin
	$(TEST_PACKAGES) $$($(GO) list -test -f '{{if .ForTest}}{{.ForTest}} {{join .Deps " "}}{{end}}' ./... | \
		awk '{all[$$1]} / github.com\/trellis-k8s\/trellis\/test\/controlplane/ {slow[$$1]} END {for (p in all) if (!(p in slow) && p !~ /test\/controlplane$$/) print p}' | sort)

.PHONY: test-again
test-again: controlplane ## Run the failed tests of bin/test-failed.txt once more, one package at a time.
	@while read -r package tests <&3; do \
		$(if $(RACE),CGO_ENABLED=1 )$(GO) run ./hack/testtimes --times bin/test-times-again.txt --failed bin/test-failed-again.txt \
			$(GO) test -json -vet off $(RACE) -count 1 -timeout 30m -run "$${tests:-.}" $$package || exit 1; \
	done 3<bin/test-failed.txt

.PHONY: test-unit
test-unit: ## Run the tests that need no control plane (RACE=-race uses the race detector, also with make test).
	$(if $(RACE),CGO_ENABLED=1 )$(GO) test -short $(RACE) -timeout 10m ./...

.PHONY: test-ui
test-ui: controlplane ## Test the page in a real Chromium: screenshots in bin/ui, axe-core if npm can download it (UI selects tests, UIFLAGS, see docs/ui.md).
	@axe=; if command -v npm >/dev/null; then directory=$$(mktemp -d); trap 'rm -rf "$$directory"' EXIT; \
		if npm install --silent --no-audit --no-fund --no-save --prefix "$$directory" axe-core@4.14.1 >/dev/null 2>&1; \
		then axe="-ui.axe $$directory/node_modules/axe-core/axe.min.js"; fi; fi; \
	[ -n "$$axe" ] || echo "npm cannot download axe-core: accessibility is not checked."; \
	$(GO) test ./test/ui -count 1 -timeout 30m -parallel 3 -run '$(or $(UI),.)' -ui.browser -ui.shots '$(CURDIR)/bin/ui' $$axe $(UIFLAGS)

.PHONY: faults
faults: controlplane ## Make every request fail in every way, and check that nothing is lost (FAULTS, FAULTS_RESUME, FAULTS_TOGETHER, see CONTRIBUTING.md).
	@$(if $(FAULTS)$(filter true,$(FAULTS_RESUME)),,rm -f bin/faults.passed)
	$(GO) test -C test/faults -count 1 -parallel 6 -timeout 6h -run '$(or $(FAULTS),TestFaults)$$' -faults.full \
		-faults.together $(or $(FAULTS_TOGETHER),$(if $(word 3,$(subst /, ,$(FAULTS))),1,16)) $(if $(filter true,$(if $(FAULTS),$(FAULTS_RESUME),true)),-faults.resume $(CURDIR)/bin/faults.passed)

.PHONY: chart
chart: controlplane ## Run all tests of the Helm chart and of the image, including those that take minutes.
	$(GO) test -C test/chart -count 1 -timeout 1h -v -chart.long
	$(GO) test -count 1 -parallel 6 -timeout 2h ./test/integration -kit.rights

.PHONY: trouble
trouble: controlplane ## Test failures that last for minutes: 10,000 objects, a full disk, expired tokens, little memory (TROUBLE selects tests, see CONTRIBUTING.md).
	$(GO) test -C test/trouble -count 1 -timeout 2h -run '$(or $(TROUBLE),.)' -trouble.long

.PHONY: soak
soak: controlplane ## Cause random faults for SOAK (2h) with 3,000 objects; results in bin/soak.txt and bin/soak.json.
	$(GO) test -C test/trouble -count 1 -timeout 0 -v -run 'TestSoak$$' -trouble.soak $(SOAK) -trouble.soak.out '$(CURDIR)/bin'

.PHONY: bench
bench: controlplane build bin/bench ## Measure the resource-manager (10 minutes; BENCHFLAGS, see docs/performance.md).
	bin/bench --json bin/bench.json $(BENCHFLAGS)

.PHONY: bin/bench
bin/bench:
	@$(GO) build -o $@ ./test/bench

.PHONY: bench-api
bench-api: controlplane bin/bench-api ## Measure the garden's API server against a CRD (10 minutes; BENCHAPIFLAGS, see docs/bench-api.md).
	bin/bench-api $(BENCHAPIFLAGS)

.PHONY: bin/bench-api
bin/bench-api:
	@$(GO) build -o $@ ./test/bench-api

.PHONY: bench-fleet
bench-fleet: controlplane build bin/sites bin/bench-fleet ## Measure the example flow with 1,000 owners (40 minutes; BENCHFLEETFLAGS, see docs/bench-fleet.md).
	bin/bench-fleet --json bin/bench-fleet.json $(BENCHFLEETFLAGS)

.PHONY: bin/bench-fleet
bin/bench-fleet:
	@$(GO) build -o $@ ./test/bench-fleet

.PHONY: bin/sites
bin/sites:
	@$(GO) build -o $@ ./examples/flow/sites

.PHONY: bench-gateway
bench-gateway: controlplane build bin/bench-gateway ## Measure the gateway with 1,000 simulated Shoots (3 minutes; BENCHGATEWAYFLAGS, see docs/exposure.md).
	bin/bench-gateway $(BENCHGATEWAYFLAGS)

.PHONY: bin/bench-gateway
bin/bench-gateway:
	@$(GO) build -o $@ ./test/bench-gateway

# Flags for bin/bench-garden, see test/bench-garden/main.go.
BENCHGARDENFLAGS ?=

.PHONY: bench-garden
bench-garden: controlplane build bin/bench-garden ## Measure the controller-manager and the scheduler with 1,000 Shoots (13 minutes; BENCHGARDENFLAGS, see docs/controllers.md).
	bin/bench-garden $(BENCHGARDENFLAGS)

.PHONY: bin/bench-garden
bin/bench-garden:
	@$(GO) build -o $@ ./test/bench-garden

# Flags for bin/bench-gardenlet, see test/bench-gardenlet/main.go.
BENCHGARDENLETFLAGS ?=

.PHONY: bench-gardenlet
bench-gardenlet: controlplane build bin/bench-gardenlet ## Measure gardenlet on a Seed with 1,000 Shoots (40 minutes; BENCHGARDENLETFLAGS, see docs/gardenlet.md).
	bin/bench-gardenlet $(BENCHGARDENLETFLAGS)

.PHONY: bin/bench-gardenlet
bin/bench-gardenlet:
	@$(GO) build -o $@ ./test/bench-gardenlet

.PHONY: bench-micro
bench-micro: ## Run the benchmarks of single functions.
	$(GO) test -short -run '^$$' -bench . -benchmem ./...

.PHONY: monitoring
monitoring: controlplane ## Test dashboard and alerts with a real Prometheus, screenshots in bin/monitoring (needs prometheus and promtool, see docs/observability.md).
	$(GO) test -C test/monitoring -count 1 -timeout 30m -v -args -monitoring -monitoring.shots '$(CURDIR)/bin/monitoring' $(MONITORINGFLAGS)

.PHONY: fuzz
fuzz: ## Run all fuzz tests, or those that match FUZZ, for FUZZTIME (30s) each, and show a table (FUZZFLAGS: -parallel, -json, -markdown).
	@GO='$(GO)' $(GO) run ./hack/fuzz -time $(FUZZTIME) -run '$(FUZZ)' $(FUZZFLAGS)

# Coverage of the statements in cmd and pkg by the tests in COVER, in the test processes and in the resource-manager processes that they start.
COVER    ?= ./...
COVERDIR := $(CURDIR)/bin/coverage

.PHONY: coverage
coverage: controlplane ## Show the statement coverage of the tests, by package (COVER selects test packages, see docs/coverage.md).
	rm -rf $(COVERDIR) && mkdir -p $(COVERDIR)/tests $(COVERDIR)/processes
	PROCESSES_COVERDIR=$(COVERDIR)/processes $(GO) test -count 1 -parallel 6 -timeout 60m -cover -covermode atomic -coverpkg ./cmd/...,./pkg/... \
		$(COVER) -args -test.gocoverdir=$(COVERDIR)/tests
	$(GO) tool covdata textfmt -i $(COVERDIR)/tests,$(COVERDIR)/processes -o $(COVERDIR)/profile
	@$(GO) run ./hack/coverage -uncovered '$(UNCOVERED)' $(COVERDIR)/profile

.PHONY: lint
lint: bin/golangci-lint prose ## Lint, with the checks of go vet, and check the language.
	bin/golangci-lint run ./...

.PHONY: prose
prose: ## Check the English of docs, comments and messages against hack/prose/rules.yaml.
	@$(GO) run ./hack/prose README.md CONTRIBUTING.md SECURITY.md docs cmd hack pkg test examples

.PHONY: vuln
vuln: bin/govulncheck ## Look for known vulnerabilities (needs the network).
	bin/govulncheck ./...

.PHONY: sbom
sbom: build ## Write the SBOM of bin/resource-manager to bin/resource-manager.cdx.json (CycloneDX).
	@$(GO) build -C hack/tools -o $(CURDIR)/bin/sbom ./sbom
	bin/sbom bin/resource-manager '$(VERSION)' > bin/resource-manager.cdx.json

# The directory of the image's files, and the creation time of the image: the time of the commit.
IMAGE_ROOT        ?= bin/image
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)

.PHONY: image-root
image-root: ## Write the files of the image to IMAGE_ROOT (bin/image) and to an archive next to it, reproducibly.
	@rm -rf '$(IMAGE_ROOT)' && mkdir -p '$(IMAGE_ROOT)'
	$(GO) build -ldflags '-s -w -buildid= -X main.version=$(VERSION)' -o '$(IMAGE_ROOT)/resource-manager' ./cmd/resource-manager
	@$(GO) build -C hack/tools -o '$(abspath $(IMAGE_ROOT)).sbom' ./sbom
	'$(abspath $(IMAGE_ROOT)).sbom' '$(IMAGE_ROOT)/resource-manager' '$(VERSION)' > '$(IMAGE_ROOT)/resource-manager.cdx.json'
	@cp LICENSE '$(IMAGE_ROOT)/' && rm '$(abspath $(IMAGE_ROOT)).sbom' && chmod 0755 '$(IMAGE_ROOT)' '$(IMAGE_ROOT)/resource-manager' && \
		chmod 0644 '$(IMAGE_ROOT)/resource-manager.cdx.json' '$(IMAGE_ROOT)/LICENSE'
	@tar --sort=name --mtime=@$(SOURCE_DATE_EPOCH) --owner=0 --group=0 --numeric-owner -C '$(IMAGE_ROOT)' -cf '$(IMAGE_ROOT).tar' .
	@find '$(IMAGE_ROOT)' -exec touch -d @$(SOURCE_DATE_EPOCH) {} +

.PHONY: image
image: ## Build the image resource-manager:VERSION with IMAGE_ENGINE (docker).
	$(or $(IMAGE_ENGINE),docker) build --build-arg VERSION='$(VERSION)' --build-arg SOURCE_DATE_EPOCH='$(SOURCE_DATE_EPOCH)' -t 'resource-manager:$(VERSION)' .

##@ Generate

# The packages that the garden's API server serves, and the packages of the types in their fields.
SERVED  := $(addprefix ./pkg/apis/,core/v1 core/v1beta1 security/v1alpha1 settings/v1alpha1 seedmanagement/v1alpha1 operations/v1alpha1 authentication/v1alpha1)
FOREIGN := $(addprefix k8s.io/,api/autoscaling/v1 api/core/v1 api/networking/v1 api/rbac/v1 apiextensions-apiserver/pkg/apis/apiextensions/v1 \
	apimachinery/pkg/api/resource apimachinery/pkg/apis/meta/v1 apimachinery/pkg/runtime apimachinery/pkg/util/intstr apimachinery/pkg/version)

.PHONY: generate
generate: bin/controller-gen bin/openapi-gen ## Generate deep copies, CRDs (and copies of external ones), OpenAPI definitions, the references, the PrometheusRule, and the copies in the Helm chart and config/.
	bin/controller-gen object paths=./pkg/apis/...
	bin/controller-gen crd paths=./pkg/apis/resources/... output:crd:dir=config/crd
	bin/controller-gen crd paths=./pkg/apis/extensions/... output:crd:dir=config/crd/extensions
	bin/controller-gen crd:allowDangerousTypes=true,generateEmbeddedObjectMeta=true paths=./pkg/apis/operator/... output:crd:dir=config/crd/operator
	bin/controller-gen crd paths=./pkg/apis/druid/... output:crd:dir=config/crd/druid
	bin/openapi-gen --go-header-file /dev/null --report-filename /dev/null --output-pkg github.com/trellis-k8s/trellis/pkg/openapi \
		--output-dir pkg/openapi --output-file zz_generated.openapi.go --output-model-name-file zz_generated.model_name.go \
		$(addprefix --readonly-pkg ,$(FOREIGN)) $(FOREIGN) $(SERVED)
	$(GO) run ./hack/crds
	$(GO) run ./hack/docs
	$(GO) run ./hack/chart

# Tools, with the versions in hack/tools/go.mod.
bin/golangci-lint: tool = github.com/golangci/golangci-lint/v2/cmd/golangci-lint
bin/govulncheck: tool = golang.org/x/vuln/cmd/govulncheck
bin/controller-gen: tool = sigs.k8s.io/controller-tools/cmd/controller-gen
bin/openapi-gen: tool = k8s.io/kube-openapi/cmd/openapi-gen

bin/golangci-lint bin/govulncheck bin/controller-gen bin/openapi-gen: hack/tools/go.mod hack/tools/go.sum
	@echo "Building $@ (golangci-lint takes a few minutes the first time)"
	@$(GO) build -modfile=hack/tools/go.mod -o $@ $(tool)
