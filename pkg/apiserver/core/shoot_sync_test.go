package core

import (
	"testing"

	"sigs.k8s.io/yaml"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

func shootOf(t *testing.T, spec string) shoot {
	t.Helper()
	s := &gardencorev1beta1.Shoot{}
	if err := yaml.UnmarshalStrict([]byte("spec: "+spec), s); err != nil {
		t.Fatal(err)
	}
	gardencorev1beta1.SetDefaultsShoot(s)
	return s
}

// TestCloudProfileFields tests how a write synchronizes the deprecated name of a profile with the reference to it.
func TestCloudProfileFields(t *testing.T) {
	t.Parallel()
	const none, a, b = "", "cloudProfile: {kind: CloudProfile, name: a}", "cloudProfile: {kind: CloudProfile, name: b}"
	const nameA, nameB, namespaced = "cloudProfileName: a", "cloudProfileName: b", "cloudProfile: {kind: NamespacedCloudProfile, name: a}"
	for _, test := range []struct{ version, old, updated, name, profile string }{
		{"1.32.0", none, nameA, "a", "CloudProfile/a"},
		{"1.32.0", none, a, "a", "CloudProfile/a"},
		{"1.32.0", none, namespaced, "", "NamespacedCloudProfile/a"},
		{"1.32.0", nameA + ", " + a, nameB + ", " + a, "b", "CloudProfile/b"},
		{"1.32.0", nameA + ", " + a, nameA + ", " + b, "b", "CloudProfile/b"},
		{"1.32.0", nameA + ", " + a, nameA + ", " + namespaced, "", "NamespacedCloudProfile/a"},
		{"1.33.0", none, nameA, "a", "CloudProfile/a"},
		{"1.33.0", none, a, "", "CloudProfile/a"},
		{"1.33.0", a, nameB + ", " + a, "b", "CloudProfile/b"},
		{"1.33.0", nameA + ", " + a, nameA + ", " + b, "", "CloudProfile/b"},
		{"1.34.0", none, nameA, "a", ""},
		{"1.34.0", nameA + ", " + a, nameA + ", " + a, "", "CloudProfile/a"},
		{"1.34.0", nameA + ", " + a, nameA + ", " + b, "a", "CloudProfile/b"}, // validation refuses it
		{"1.34.0", a, nameA + ", " + a, "a", "CloudProfile/a"},                // refused, too
		{"", none, nameA, "a", ""},
	} {
		spec := func(fields string) string { return "{kubernetes: {version: '" + test.version + "'}, " + fields + "}" }
		updated := shootOf(t, spec(test.updated))
		if test.old != none {
			syncUpdatedShoot(updated, shootOf(t, spec(test.old)))
		}
		canonicalCloudProfile(updated)
		profile := ""
		if updated.Spec.CloudProfile != nil {
			profile = updated.Spec.CloudProfile.Kind + "/" + updated.Spec.CloudProfile.Name
		}
		if text(updated.Spec.CloudProfileName) != test.name || profile != test.profile {
			t.Errorf("%+v: name %q, profile %q", test, text(updated.Spec.CloudProfileName), profile)
		}
	}
}

// TestDNSCredentialsFields does the same for the deprecated name of a DNS provider's Secret.
func TestDNSCredentialsFields(t *testing.T) {
	t.Parallel()
	const none = ""
	ref := func(kind, name string) string {
		return "credentialsRef: {apiVersion: v1, kind: " + kind + ", name: " + name + "}"
	}
	for _, test := range []struct{ oldVersion, old, version, updated, name, ref string }{
		{none, none, "1.34.0", "secretName: a", "a", "Secret/a"},
		{none, none, "1.34.0", ref("Secret", "a"), "a", "Secret/a"},
		{none, none, "1.34.0", ref("InternalSecret", "a"), "", "InternalSecret/a"},
		{none, none, "1.35.0", ref("Secret", "a"), "", "Secret/a"},
		{none, none, "1.35.0", "secretName: a", "a", ""}, // validation refuses it
		{"1.34.0", "secretName: a", "1.34.0", "secretName: a, " + ref("Secret", "b"), "b", "Secret/b"},
		{"1.34.0", "secretName: a", "1.34.0", "secretName: b, " + ref("Secret", "a"), "b", "Secret/b"},
		{"1.34.0", "secretName: a", "1.34.0", "secretName: a, " + ref("WorkloadIdentity", "b"), "", "WorkloadIdentity/b"},
		{"1.34.0", "secretName: a", "1.34.0", "secretName: b, " + ref("Secret", "c"), "b", "Secret/c"}, // validation refuses it
		{"1.34.0", "secretName: a", "1.35.0", "secretName: a, " + ref("Secret", "a"), "", "Secret/a"},
		{"1.34.0", "secretName: a", "1.35.0", "secretName: b, " + ref("Secret", "a"), "b", "Secret/a"}, // refused, too
	} {
		spec := func(version, provider string) string {
			return "{kubernetes: {version: " + version + "}, dns: {providers: [{" + provider + "}]}}"
		}
		updated := shootOf(t, spec(test.version, test.updated))
		if test.old != none {
			syncUpdatedShoot(updated, shootOf(t, spec(test.oldVersion, test.old)))
		}
		provider, got := updated.Spec.DNS.Providers[0], ""
		if provider.CredentialsRef != nil {
			got = provider.CredentialsRef.Kind + "/" + provider.CredentialsRef.Name
		}
		if text(provider.SecretName) != test.name || got != test.ref {
			t.Errorf("%+v: name %q, reference %q", test, text(provider.SecretName), got)
		}
	}
}
