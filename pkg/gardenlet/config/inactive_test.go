package config

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
)

const (
	run      = "cmd/gardenlet/app/run.go"
	observe  = "cmd/gardenlet/app/observe.go"
	ofSeed   = "pkg/seed/bundles.go"
	ofDue    = "pkg/shoot/due.go"
	ofCare   = "pkg/shoot/care/controller.go"
	ofGarden = "pkg/gardenlet/access/"
	gateway  = "pkg/exposure/gateway.go"
)

// readers are the files that read the fields with an effect, by the paths of the fields. A path stands for all fields below it. If a
// file has several fields of a name, the text is what it contains.
func readers() map[string]struct{ file, text string } {
	type reader = struct{ file, text string }
	return map[string]reader{
		"gardenClientConnection":                                                    {"cmd/gardenlet/app/command.go", ""},
		"gardenClientConnection.gardenClusterAddress":                               {ofGarden + "kubeconfig.go", ""},
		"gardenClientConnection.gardenClusterCACert":                                {ofGarden + "kubeconfig.go", ""},
		"gardenClientConnection.bootstrapKubeconfig":                                {ofGarden + "establish.go", ""},
		"gardenClientConnection.kubeconfigSecret":                                   {ofGarden + "renew.go", ""},
		"gardenClientConnection.kubeconfigValidity.validity":                        {ofGarden + "establish.go", "validity.Validity"},
		"gardenClientConnection.kubeconfigValidity.autoRotationJitterPercentageMin": {ofGarden + "renew.go", ""},
		"gardenClientConnection.kubeconfigValidity.autoRotationJitterPercentageMax": {ofGarden + "renew.go", ""},
		"seedClientConnection":                                                      {run, ""},
		"shootClientConnection":                                                     {"pkg/shoot/options.go", ""},
		"controllers.cacheSyncTimeout":                                              {run, ""},
		"controllers.backupBucket.concurrentSyncs":                                  {"pkg/seed/add.go", "BackupBucket.ConcurrentSyncs"},
		"controllers.backupEntry.concurrentSyncs":                                   {"pkg/seed/add.go", "BackupEntry.ConcurrentSyncs"},
		"controllers.backupEntry.deletionGracePeriodHours":                          {"pkg/gardenlet/backupentry/plan.go", ""},
		"controllers.backupEntry.deletionGracePeriodShootPurposes":                  {"pkg/gardenlet/backupentry/plan.go", ""},
		"controllers.bastion.concurrentSyncs":                                       {"pkg/gardenlet/bastion/add.go", ""},
		"controllers.controllerInstallation.concurrentSyncs":                        {"cmd/gardenlet/app/extensions.go", "ControllerInstallation.ConcurrentSyncs"},
		"controllers.gardenlet.syncPeriod":                                          {"pkg/gardenlet/selfupgrade/reconcile.go", "Gardenlet.SyncPeriod"},
		"controllers.seed.syncPeriod":                                               {"pkg/seed/controller.go", "Seed.SyncPeriod"},
		"controllers.seed.leaseResyncSeconds":                                       {run, ""},
		"controllers.seed.leaseResyncMissThreshold":                                 {run, ""},
		"controllers.seedCare.conditionThresholds":                                  {"pkg/seed/add.go", ""},
		"controllers.shoot.concurrentSyncs":                                         {"pkg/shoot/add.go", ""},
		"controllers.shoot.syncPeriod":                                              {ofDue, ""},
		"controllers.shoot.reconcileInMaintenanceOnly":                              {ofDue, ""},
		"controllers.shoot.respectSyncPeriodOverwrite":                              {ofDue, ""},
		"controllers.shoot.retryDuration":                                           {"pkg/shoot/status.go", ""},
		"controllers.shoot.dnsEntryTTLSeconds":                                      {"pkg/shoot/dnsrecords.go", ""},
		"controllers.shoot.rollout.budget":                                          {"pkg/shoot/rollout_pacing.go", ""},
		"controllers.shoot.rollout.nodes":                                           {"pkg/shoot/rollout_pacing.go", ""},
		"controllers.shoot.rollout.maxFailed":                                       {"pkg/shoot/rollout_pacing.go", ""},
		"controllers.shootCare.concurrentSyncs":                                     {ofCare, ""},
		"controllers.shootCare.syncPeriod":                                          {ofCare, ""},
		"controllers.shootCare.staleExtensionHealthChecks":                          {ofCare, ""},
		"controllers.shootCare.managedResourceProgressingThreshold":                 {ofCare, ""},
		"controllers.shootCare.conditionThresholds":                                 {ofCare, ""},
		"controllers.shootCare.webhookRemediatorEnabled":                            {ofCare, ""},
		"controllers.shootState.concurrentSyncs":                                    {"pkg/shoot/options.go", "ShootState.ConcurrentSyncs"},
		"controllers.shootState.syncPeriod":                                         {"pkg/shoot/options.go", "ShootState.SyncPeriod"},
		"controllers.networkPolicy.additionalNamespaceSelectors":                    {"cmd/gardenlet/app/controllers.go", ""},
		"controllers.managedSeed.concurrentSyncs":                                   {"pkg/gardenlet/managedseed/add.go", "ManagedSeed.ConcurrentSyncs"},
		"controllers.managedSeed.syncPeriod":                                        {"pkg/gardenlet/managedseed/reconcile.go", "ManagedSeed.SyncPeriod"},
		"controllers.managedSeed.waitSyncPeriod":                                    {"pkg/gardenlet/managedseed/reconcile.go", ""},
		"controllers.tokenRequestor.concurrentSyncs":                                {"cmd/gardenlet/app/tokens.go", "TokenRequestor.ConcurrentSyncs"},
		"controllers.tokenRequestorWorkloadIdentity.concurrentSyncs":                {"cmd/gardenlet/app/tokens.go", "TokenRequestorWorkloadIdentity.ConcurrentSyncs"},
		"controllers.tokenRequestorWorkloadIdentity.tokenExpirationDuration":        {"cmd/gardenlet/app/tokens.go", ""},
		"controllers.vpaEvictionRequirements.concurrentSyncs":                       {"cmd/gardenlet/app/controllers.go", "VPAEvictionRequirements.ConcurrentSyncs"},
		"resources.capacity":                                                        {"pkg/seed/status.go", ""},
		"resources.reserved":                                                        {"pkg/seed/status.go", ""},
		"leaderElection":                                                            {run, ""},
		"logLevel":                                                                  {run, ""},
		"logFormat":                                                                 {run, ""},
		"server.healthProbes.bindAddress":                                           {observe, ""},
		"server.healthProbes.port":                                                  {observe, ""},
		"server.metrics.bindAddress":                                                {observe, ""},
		"server.metrics.port":                                                       {observe, ""},
		"debugging":                                                                 {run, ""},
		"featureGates":                                                              {"cmd/gardenlet/app/extensions.go", ""},
		"seedConfig":                                                                {run, ""},
		"sni.ingress.serviceName":                                                   {gateway, ""},
		"sni.ingress.serviceExternalIP":                                             {gateway, ""},
		"sni.ingress.namespace":                                                     {gateway, "ingress.Namespace"},
		"sni.ingress.labels":                                                        {gateway, "ingress.Labels"},
		"etcdConfig.etcdController.workers":                                         {ofSeed, ""},
		"etcdConfig.backupCompactionController.enableBackupCompaction":              {"pkg/shoot/backups.go", ""},
		"etcdConfig.backupCompactionController.eventsThreshold":                     {"pkg/shoot/backups.go", ""},
		"etcdConfig.deltaSnapshotRetentionPeriod":                                   {"pkg/shoot/backups.go", ""},
		"exposureClassHandlers.name":                                                {gateway, "handler.Name"},
		"exposureClassHandlers.loadBalancerService":                                 {gateway, ""},
		"exposureClassHandlers.sni":                                                 {gateway, "handler.SNI"},
		"nodeToleration":                                                            {ofSeed, ""},
	}
}

// leaves returns the paths of all fields without fields of this project, with their names in Go.
func leaves(path, name string, of reflect.Type) map[string]string {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	all := map[string]string{}
	if path == "seedConfig" || of.Kind() != reflect.Struct || !strings.Contains(of.PkgPath(), "apis/gardenlet") {
		return map[string]string{path: name}
	}
	for i := range of.NumField() {
		field := of.Field(i)
		json, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case json == "" && field.Type == reflect.TypeFor[metav1.TypeMeta]():
		case json == "":
			maps.Copy(all, leaves(path, name, field.Type))
		default:
			maps.Copy(all, leaves(strings.TrimPrefix(path+"."+json, "."), field.Name, field.Type))
		}
	}
	return all
}

// TestEachFieldHasAnEffectOrIsListed checks that each field of a configuration is read by the file that is named for it, or is listed as
// one without an effect, and that no field is both.
func TestEachFieldHasAnEffectOrIsListed(t *testing.T) {
	named, used := readers(), map[string]bool{}
	for path, name := range leaves("", "", reflect.TypeFor[v1alpha1.GardenletConfiguration]()) {
		best, effective := "", false
		for candidate := range named {
			if contains(candidate, path) && len(candidate) > len(best) {
				best, effective = candidate, true
			}
		}
		for _, unused := range Unused() {
			if contains(unused.Path, path) && len(unused.Path) > len(best) {
				best, effective = unused.Path, false
			}
		}
		used[best] = true
		switch {
		case best == "":
			t.Errorf("the field %s has neither a reader nor a reason", path)
		case effective:
			checkReader(t, path, name, best, named[best].file, named[best].text)
		}
	}
	for _, path := range slices.Concat(slices.Collect(maps.Keys(named)), pathsOf(Unused())) {
		if !used[path] {
			t.Errorf("%s is the path of no field, or of fields that others name", path)
		}
	}
}

// checkReader checks that a file reads a field.
func checkReader(t *testing.T, path, name, row, file, text string) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", "..", filepath.FromSlash(file)))
	if err != nil {
		t.Fatal(err)
	}
	if text == "" && path == row {
		text = "." + name
	}
	if !strings.Contains(string(content), text) {
		t.Errorf("%s does not read the field %s (%s)", file, path, text)
	}
}

// contains reports whether a path is that of a field or contains it.
func contains(path, field string) bool { return path == field || strings.HasPrefix(field, path+".") }

func pathsOf(fields []NotUsed) (paths []string) {
	for _, field := range fields {
		paths = append(paths, field.Path)
	}
	return paths
}

// TestUnusedFieldsAreDocumented checks that the table of docs/gardenlet.md has each field without an effect, with its reason, and no
// other.
func TestUnusedFieldsAreDocumented(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "gardenlet.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Not active\n")
	var want, got []string
	for _, field := range Unused() {
		want = append(want, "| `"+field.Path+"` | "+field.Why+" |")
	}
	for line := range strings.SplitSeq(section, "\n") {
		if strings.HasPrefix(line, "| `") {
			got = append(got, line)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the table has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestInactive checks that only fields without an effect are reported, and only if they differ from their defaults.
func TestInactive(t *testing.T) {
	for given, want := range map[string][]string{
		"":                                       nil,
		"monitoring: {shoot: {enabled: true}}\n": nil, // the default
		"logLevel: debug\n":                      nil,
		"monitoring: {shoot: {enabled: false}}\nlogging: {enabled: true}\n":                                                   {"logging", "monitoring"},
		"controllers: {managedSeed: {jitterUpdates: true, syncPeriod: 2h}, seedCare: {syncPeriod: 1m}}\n":                     {"controllers.seedCare.syncPeriod", "controllers.managedSeed.jitterUpdates"},
		"etcdConfig: {featureGates: {A: true}, backupLeaderElection: {reelectionPeriod: 1s}, etcdController: {workers: 3}}\n": {"etcdConfig.backupLeaderElection", "etcdConfig.featureGates"},
	} {
		c, err := Parse([]byte(given + minimal))
		if err != nil {
			t.Fatalf("%s: %v", given, err)
		}
		if got, err := Inactive(c); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %v (%v), want %v", given, got, err, want)
		}
	}
	c := &v1alpha1.GardenletConfiguration{}
	v1alpha1.SetDefaults(c)
	c.Controllers.Shoot.ProgressReportPeriod = ptr.To(metav1.Duration{Duration: time.Second})
	if got, err := Inactive(c); err != nil || !slices.Equal(got, []string{"controllers.shoot.progressReportPeriod"}) {
		t.Errorf("got %v (%v)", got, err)
	}
}
