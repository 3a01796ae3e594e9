package apiserver

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
	"github.com/trellis-k8s/trellis/test/kit"
)

// namedIn requests a token of an identity for an object, and returns the kinds of objects that the token names.
func namedIn(t *testing.T, c client.Client, identity *securityv1alpha1.WorkloadIdentity, object *securityv1alpha1.ContextObject) (string, error) {
	t.Helper()
	asked := &securityv1alpha1.TokenRequest{Spec: securityv1alpha1.TokenRequestSpec{ContextObject: object, ExpirationSeconds: ptr(int64(7200))}}
	if err := c.SubResource("token").Create(t.Context(), identity, asked); err != nil {
		return "", err
	}
	token, err := jwt.ParseSigned(asked.Status.Token, []jose.SignatureAlgorithm{jose.ES256})
	kit.Must(t, err)
	claims := &tokenClaims{}
	kit.Must(t, token.UnsafeClaimsWithoutVerification(claims)) // the tests of the signer cover the signature
	return strings.Join(slices.Sorted(maps.Keys(claims.Named)), " "), nil
}

// TestTokenContexts requests tokens for each kind of object that a gardenlet may name, and for objects that it must not
// name.
func TestTokenContexts(t *testing.T) {
	t.Parallel()
	const namespace = "garden-contexts"
	c := newClient(t)
	shoot := newShoot(t, c, namespace, "owner")
	project := exampleOf(t, "Project", "", "contexts", &gardencorev1beta1.Project{})
	project.Spec.Namespace = ptr(namespace)
	seed := exampleOf(t, "Seed", "", "contexts", &gardencorev1beta1.Seed{})
	bucket := exampleOf(t, "BackupBucket", "", "contexts", &gardencorev1beta1.BackupBucket{})
	bucket.Spec.SeedName = ptr(seed.Name)
	identity := exampleOf(t, "WorkloadIdentity", namespace, "identity", &securityv1alpha1.WorkloadIdentity{})
	for _, object := range []client.Object{project, seed, bucket, identity} {
		kit.Must(t, c.Create(t.Context(), object))
	}
	shoot.Spec.SeedName = ptr(seed.Name)
	kit.Must(t, c.SubResource("binding").Update(t.Context(), shoot))
	shoot.Status.TechnicalID = "shoot--contexts--owner"
	kit.Must(t, c.Status().Update(t.Context(), shoot))
	entry := func(name, bucket string) *gardencorev1beta1.BackupEntry {
		entry := exampleOf(t, "BackupEntry", namespace, name, &gardencorev1beta1.BackupEntry{})
		entry.Spec.BucketName, entry.Spec.SeedName = bucket, ptr(seed.Name)
		kit.Must(t, c.Create(t.Context(), entry))
		return entry
	}
	owned := entry(shoot.Status.TechnicalID+"--"+string(shoot.UID), bucket.Name)
	orphan := entry("shoot--contexts--gone--"+string(seed.UID), bucket.Name)
	lost := entry("lost", "missing")

	config := shared.Get(t).Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: "gardener.cloud:system:seed:contexts", Groups: []string{"gardener.cloud:system:seeds", "system:masters"}}
	gardenlet, err := client.New(config, client.Options{Scheme: c.Scheme()})
	kit.Must(t, err)
	for name, test := range map[string]struct {
		kind    string
		object  client.Object
		change  func(*securityv1alpha1.ContextObject)
		want    string
		refused func(error) bool
	}{
		"Shoot":                       {kind: "Shoot", object: shoot, want: "project seed shoot workloadIdentity"},
		"Seed":                        {kind: "Seed", object: seed, want: "seed workloadIdentity"},
		"BackupBucket":                {kind: "BackupBucket", object: bucket, want: "backupBucket seed workloadIdentity"},
		"BackupEntry":                 {kind: "BackupEntry", object: owned, want: "backupBucket backupEntry project seed shoot workloadIdentity"},
		"BackupEntry of a Shoot gone": {kind: "BackupEntry", object: orphan, want: "backupBucket backupEntry seed workloadIdentity"},
		"BackupEntry without bucket":  {kind: "BackupEntry", object: lost, refused: apierrors.IsInternalError},
		"missing": {
			kind: "Seed", object: seed, refused: apierrors.IsBadRequest,
			change: func(o *securityv1alpha1.ContextObject) { o.Name = "missing" },
		},
		"another UID": {
			kind: "Seed", object: seed, refused: apierrors.IsBadRequest,
			change: func(o *securityv1alpha1.ContextObject) { o.UID = types.UID("other") },
		},
		"another kind": {kind: "Project", object: project, refused: func(err error) bool { return apierrors.IsBadRequest(err) || apierrors.IsInvalid(err) }},
		"another version": {
			kind: "Seed", object: seed, refused: func(err error) bool { return apierrors.IsBadRequest(err) || apierrors.IsInvalid(err) },
			change: func(o *securityv1alpha1.ContextObject) { o.APIVersion = "core.gardener.cloud/v1" },
		},
	} {
		reference := &securityv1alpha1.ContextObject{
			APIVersion: gardencorev1beta1.SchemeGroupVersion.String(), Kind: test.kind, Name: test.object.GetName(), UID: test.object.GetUID(),
		}
		if namespace := test.object.GetNamespace(); namespace != "" {
			reference.Namespace = &namespace
		}
		if test.change != nil {
			test.change(reference)
		}
		named, err := namedIn(t, gardenlet, identity, reference)
		switch {
		case test.refused == nil && err != nil, test.refused != nil && !test.refused(err):
			t.Errorf("%s: %v", name, err)
		case named != test.want:
			t.Errorf("%s: the token names %q, want %q", name, named, test.want)
		}
	}
}
