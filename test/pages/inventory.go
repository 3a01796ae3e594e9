package pages

import "regexp"

// RunBy names the test that runs the commands of a page, in blocks and in sentences, except those for which Why
// gives a reason.
var RunBy = map[string]string{
	"README.md":                   "TestTranscripts",
	"docs/cli.md":                 "TestTranscripts",
	"docs/tutorial.md":            "TestTranscripts",
	"docs/migration.md":           "TestMigrationPage",
	"docs/installation.md":        "TestInstallationPage",
	"docs/backup.md":              "TestDisasterRecoveryGuide",
	"docs/csr-approver.md":        "TestCommandsOfPages",
	"docs/health-checks.md":       "TestCommandsOfPages",
	"docs/managed-resources.md":   "TestCommandsOfPages",
	"docs/network-policies.md":    "TestCommandsOfPages",
	"docs/node-controllers.md":    "TestCommandsOfPages",
	"docs/operations.md":          "TestCommandsOfPages",
	"docs/runbook.md":             "TestCommandsOfPages",
	"docs/ui.md":                  "TestCommandsOfPages",
	"docs/token-invalidator.md":   "TestCommandsOfPages",
	"docs/validating-webhooks.md": "TestTranscriptOfTheDocs",
	"docs/writing-extensions.md":  "TestWritingExtensions",
	"examples/webshop/README.md":  "TestWebshopPage",
}

// exception is a kind of command that no test runs.
type exception struct {
	command *regexp.Regexp
	why     string
}

// exceptions are checked in this order.
var exceptions = []exception{
	{regexp.MustCompile(`^(sudo |NIGHTLY=true )?(make|go test|\.ci/run)\b`),
		"tests and builds themselves; TestCommandsExist checks targets, packages and flags"},
	{regexp.MustCompile(`^bin/bench\b`), "takes minutes: make bench"},
	{regexp.MustCompile(`^bin/resource-manager\b`), "runs until it is stopped; every test on a control plane starts it this way"},
	{regexp.MustCompile(`^bin/apiserver\b`), "runs until it is stopped; every test in test/apiserver starts it this way"},
	{regexp.MustCompile(`^kubectl create --raw \S+/adminkubeconfig\b`), "needs a Shoot with its certificate authority: TestKubeconfigs"},
	{regexp.MustCompile(`^kubectl (get cluster |get shoots -A .*Pending|get events -A .*ControlPlaneOrphaned|annotate shoot web \S+/accept-earlier-state=)`),
		"needs a garden: TestRestoredGarden in test/shoot"},
	{regexp.MustCompile(`^kubectl get --raw \S+/shoots/\S+ \| jq .+ \| kubectl replace --raw \S+/binding -f -$`), "needs a garden with two Seeds: TestMigration"},
	{regexp.MustCompile(`^bin/greeting\b`), "runs until it is stopped; TestWritingExtensions starts it this way"},
	{regexp.MustCompile(`^bin/kubectl get pods\b`), "needs the landscape: test/landscape/e2e"},
	{regexp.MustCompile(`^bin/kubectl (get (gardens|managedresources --namespace garden) |--kubeconfig \.run/landscape/garden\.kubeconfig get seeds)`),
		"needs the landscape: TestGarden in test/landscape/e2e"},
	{regexp.MustCompile(`^bin/kubectl get (service --namespace istio-ingress|tlsroutes )`), "needs the landscape: TestFleet in test/landscape/e2e"},
	{regexp.MustCompile(`^bin/(kubectl get seeds,|kubectl-mr get shoot/|kubectl --kubeconfig \S+(shoot|nodes)\.kubeconfig )`),
		"needs the landscape: TestFleet in test/landscape/e2e"},
	{regexp.MustCompile(`^bin/kubectl-mr ui\b`), "serves until it is stopped: test/ui"},
	{regexp.MustCompile(`^kubectl (-n \S+ )?(logs|port-forward)\b`), "needs a kubelet, which simulated nodes do not have"},
	{regexp.MustCompile(`^kubectl mr ui\b`), "serves until it is stopped: test/ui"},
	{regexp.MustCompile(`^kubectl mr top\b`), "needs a terminal: TestTop, TestTopOnTerminal"},
	{regexp.MustCompile(`^kubectl -n garden get internalsecrets `), "needs a garden: TestDomainsOfTwoServers in test/apiserver reads the claims"},
	{regexp.MustCompile(`^kubectl mr can-i`), "needs a garden: TestIsolation in test/admissioncontroller"},
	{regexp.MustCompile(`^kubectl mr (get|tree|why) (shoot|seed|gardens)/`), "needs a garden: TestFleet in test/cli"},
	{regexp.MustCompile(`^kubectl mr render -f \S+ >|^kubectl mr diff --render|\| kubectl mr render\b`),
		"uses sites of the example flow: TestRenderedIsWhatIsEmitted"},
	{regexp.MustCompile(`^(kubectl (patch|annotate|delete) shoot registry|KUBECONFIG=\.run/(seed/|registry\.)kubeconfig kubectl get) `),
		"needs the fleet of the demo: TestFleet in hack/demo"},
	{regexp.MustCompile(`^export KUBECONFIG=`), "is for the demo; tests have their own kubeconfig"},
	{regexp.MustCompile(`^helm upgrade --install \S+ charts/(gardenlet|resource-manager) --namespace garden\b`),
		"needs a garden: TestSeed in test/landscape/e2e"},
	{regexp.MustCompile(`^helm upgrade --install \S+ charts/controller-manager --namespace garden\b`),
		"needs a garden: TestInstallations in test/controllermanager applies the chart"},
	{regexp.MustCompile(`^helm upgrade --install \S+ charts/admission-controller --namespace garden\b`),
		"needs a garden: TestRules in test/admissioncontroller applies the chart"},
	{regexp.MustCompile(`^helm upgrade --install \S+ charts/scheduler --namespace garden\b`),
		"needs a garden: TestScheduler in test/scheduler applies the rights of the chart"},
	{regexp.MustCompile(`^helm upgrade --install \S+ charts/admission-local/\S+ --namespace garden\b`),
		"needs a garden: TestAdmission in test/apiserver applies the rights of the chart"},
	{regexp.MustCompile(`^kubectl (get|describe) controllerinstallations?\b`),
		"needs a garden with extensions: TestExtension in test/installation"},
	{regexp.MustCompile(`^helm pull\b`), "needs a repository of charts; TestCreateFromChart uses a local chart instead"},
	{regexp.MustCompile(`^kubectl mr (create|diff) exporter\b`), "uses the pulled chart: TestCreateFromChart"},
}

// Why returns why a command is not run. It is empty if a test has to run the command.
func Why(command string) string {
	for _, each := range exceptions {
		if each.command.MatchString(command) {
			return each.why
		}
	}
	return ""
}
