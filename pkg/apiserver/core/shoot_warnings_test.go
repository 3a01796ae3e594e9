package core

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

const (
	day          = 24 * time.Hour
	testInterval = 90 * day
)

func TestDeprecatedFields(t *testing.T) {
	t.Parallel()
	for spec, want := range map[string]string{
		"{}":                           "",
		"{cloudProfileName: a}":        "spec.cloudProfileName",
		"{secretBindingName: a}":       "spec.secretBindingName",
		"{addons: {}}":                 "spec.addons",
		"{dns: {providers: [{}, {}]}}": "",
		"{dns: {providers: [{}]}}":     "",
		"{kubernetes: {version: '1.31.0', clusterAutoscaler: {ignoreTaints: [a]}}}":               "clusterAutoscaler.ignoreTaints",
		"{kubernetes: {version: '1.32.0', clusterAutoscaler: {maxEmptyBulkDelete: 1}}}":           "clusterAutoscaler.maxEmptyBulkDelete",
		"{kubernetes: {version: '1.32.0', kubeAPIServer: {enableAnonymousAuthentication: true}}}": "kubeAPIServer.enableAnonymousAuthentication",
		"{kubernetes: {version: '1.32.0', kubeAPIServer: {watchCacheSizes: {default: 1}}}}":       "kubeAPIServer.watchCacheSizes.default",
		"{kubernetes: {version: '1.32.0', kubeControllerManager: {podEvictionTimeout: 1m}}}":      "kubeControllerManager.podEvictionTimeout",
		"{kubernetes: {version: '1.32.0', kubeScheduler: {kubeMaxPDVols: '1'}}}":                  "kubeScheduler.kubeMaxPDVols",
		"{kubernetes: {version: '1.32.0', kubeProxy: {mode: IPVS}}}":                              "kubeProxy.mode",
		"{kubernetes: {version: '1.32.0', kubeProxy: {mode: IPTables}}}":                          "",
		"{kubernetes: {version: '1.32.0'}, cloudProfileName: a}":                                  "",
		"{kubernetes: {version: '1.32.0'}, dns: {providers: [{type: a, secretName: a}]}}":         "",
	} {
		s := shootOf(t, spec)
		warnings := shootWarnings(s, nil, time.Time{}, testInterval)
		if want == "" && len(warnings) > 0 || want != "" && (len(warnings) != 1 || !strings.Contains(warnings[0], want)) {
			t.Errorf("%s: %q, want one about %q", spec, warnings, want)
		}
		s.DeletionTimestamp = &metav1.Time{}
		if warnings := shootWarnings(s, nil, time.Time{}, testInterval); len(warnings) > 0 {
			t.Errorf("%s, being deleted: %q", spec, warnings)
		}
	}
}

func TestRotationWarnings(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	const recently, longAgo, month = "2026-05-20T00:00:00Z", "2026-01-01T00:00:00Z", "2026-05-01T00:00:00Z"
	all := func(change, to string) string {
		rotations := "{certificateAuthorities: {lastInitiationTime: R}, etcdEncryptionKey: {lastInitiationTime: R}, observability: {lastInitiationTime: R}, " +
			"serviceAccountKey: {lastInitiationTime: R}, sshKeypair: {lastInitiationTime: R}}"
		return strings.ReplaceAll(strings.Replace(rotations, change, to, 1), "R", "'"+recently+"'")
	}
	due := func(name string) string {
		return all(name+": {lastInitiationTime: R}", name+": {lastInitiationTime: '"+longAgo+"'}")
	}
	prepared := func(name, finished string) string {
		return all(name+": {", name+": {phase: Prepared, lastInitiationFinishedTime: '"+finished+"', ")
	}
	for _, test := range []struct{ created, rotation, want string }{
		{recently, "", ""},
		{longAgo, "", "consider rotating the shoot credentials"},
		{longAgo, all("", ""), ""},
		{longAgo, due("certificateAuthorities"), "rotating the certificate authorities"},
		{longAgo, due("etcdEncryptionKey"), "rotating the ETCD encryption key"},
		{longAgo, due("observability"), "rotating the observability passwords"},
		{longAgo, due("serviceAccountKey"), "rotating the ServiceAccount token signing key"},
		{longAgo, due("sshKeypair"), "rotating the SSH key pair"},
		{recently, due("sshKeypair"), ""},
		{longAgo, all("sshKeypair: {lastInitiationTime: R}", "sshKeypair: {}"), "rotating the SSH key pair"},
		{longAgo, prepared("certificateAuthorities", recently), ""},
		{longAgo, prepared("certificateAuthorities", month), "the certificate authorities rotation"},
		{longAgo, prepared("etcdEncryptionKey", month), "the ETCD encryption key rotation"},
		{longAgo, prepared("serviceAccountKey", month), "the ServiceAccount token signing key rotation"},
	} {
		s := shootOf(t, "{provider: {workers: [{name: a}]}}")
		created, err := time.Parse(time.RFC3339, test.created)
		if err != nil {
			t.Fatal(err)
		}
		s.CreationTimestamp = metav1.NewTime(created)
		if test.rotation != "" {
			s.Status.Credentials = &gardencorev1beta1.ShootCredentials{}
			if err := yaml.UnmarshalStrict([]byte("rotation: "+test.rotation), s.Status.Credentials); err != nil {
				t.Fatal(err)
			}
		}
		warnings := shootWarnings(s, s, now, testInterval)
		if test.want == "" && len(warnings) > 0 || test.want != "" && (len(warnings) != 1 || !strings.Contains(warnings[0], test.want)) {
			t.Errorf("created %s, %s: %q, want one about %q", test.created, test.rotation, warnings, test.want)
		}
	}
}
