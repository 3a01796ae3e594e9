package worker

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/operatingsystemconfig"
	"github.com/trellis-k8s/trellis/pkg/extension/bundles"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/provider/local"
	localosc "github.com/trellis-k8s/trellis/pkg/provider/local/operatingsystemconfig"
)

const (
	// prefixToken is the prefix of the names of ManagedResources with the bootstrap token of a machine.
	prefixToken = "machine-token-"
	// labelExpires marks these ManagedResources. Its value is when the token ends, in seconds since 1970.
	labelExpires = "local.provider.extensions.gardener.cloud/bootstrap-token-expires"

	// The lengths of the parts of a bootstrap token, and their characters (Kubernetes).
	lengthID, lengthSecret = 6, 16
	tokenCharacters        = "abcdefghijklmnopqrstuvwxyz0123456789"
	// prefixTokenSecret is the prefix of the names of Secrets with bootstrap tokens (Kubernetes).
	prefixTokenSecret = "bootstrap-token-"
)

// bootstrapToken is the token with which one new machine becomes a node.
type bootstrapToken struct{ id, secret string }

// newToken returns a random token.
func newToken() (bootstrapToken, error) {
	text := make([]byte, lengthID+lengthSecret)
	for i := range text {
		at, err := rand.Int(rand.Reader, big.NewInt(int64(len(tokenCharacters))))
		if err != nil {
			return bootstrapToken{}, fmt.Errorf("make a bootstrap token: %w", err)
		}
		text[i] = tokenCharacters[at.Int64()]
	}
	return bootstrapToken{string(text[:lengthID]), string(text[lengthID:])}, nil
}

// issued is a token that exists in the shoot.
type issued struct {
	key     flow.Key
	machine string
	expires time.Time
	// deleting is set if it is being deleted.
	deleting bool
}

// needsToken reports whether the user data of machines has a place for a bootstrap token.
func (d Deployment) needsToken() bool {
	return bytes.Contains(d.UserData, []byte(operatingsystemconfig.PlaceholderToken))
}

// userData returns the user data of a machine, with its name and its bootstrap token.
func (d Deployment) userData(name string, token *bootstrapToken) []byte {
	data := bytes.ReplaceAll(d.UserData, []byte(operatingsystemconfig.PlaceholderMachine), []byte(prefixMachine+name))
	if d.InPlaceHash != "" {
		data = localosc.WithVersion(data, d.MachineImage.Version)
	}
	if token == nil {
		return data
	}
	return bytes.ReplaceAll(data, []byte(operatingsystemconfig.PlaceholderToken), []byte(token.id+"."+token.secret))
}

// tokenBundle returns the bundle with the bootstrap token of a new machine. The token can only be used to request the certificates of a
// node agent and of a kubelet.
func (in inputs) tokenBundle(deployment Deployment, machine string, token bootstrapToken, expires time.Time) flow.Bundle {
	bundle := bundles.Shoot(in.namespace, prefixToken+machine)
	bundle.Labels = deployment.labels(machine)
	bundle.Labels[labelExpires] = strconv.FormatInt(expires.Unix(), 10)
	bundle.Objects = []client.Object{&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: prefixTokenSecret + token.id},
		Type:       corev1.SecretTypeBootstrapToken,
		Data: map[string][]byte{
			"description": []byte("The machine " + prefixMachine + machine), "token-id": []byte(token.id), "token-secret": []byte(token.secret),
			"expiration": []byte(expires.UTC().Format(time.RFC3339)), "usage-bootstrap-authentication": []byte("true"),
		},
	}}
	return bundle
}

// issuedTokens returns the tokens of the machines of a Shoot. It reads without a cache, which may not contain new ones yet.
func (a *Actuator) issuedTokens(ctx context.Context, namespace string) ([]issued, error) {
	if a.Machines.Simulated {
		return nil, nil
	}
	var list resourcesv1alpha1.ManagedResourceList
	if err := a.Uncached.List(ctx, &list, client.InNamespace(namespace), client.HasLabels{labelExpires}); err != nil {
		return nil, fmt.Errorf("list the bootstrap tokens of machines: %w", err)
	}
	var tokens []issued
	for i := range list.Items {
		mr := &list.Items[i]
		// An invalid value counts as one in the past, so that the token is deleted.
		seconds, _ := strconv.ParseInt(mr.Labels[labelExpires], 10, 64)
		tokens = append(tokens, issued{
			key: flow.Key{Namespace: mr.Namespace, Name: mr.Name}, machine: mr.Labels[local.LabelMachine], expires: time.Unix(seconds, 0), deleting: mr.DeletionTimestamp != nil,
		})
	}
	return tokens, nil
}

// withoutToken marks machines that can never become nodes: they start without the token that they need, because an earlier Pod of the same
// name has used it. That is so if a user has deleted their Pod, and the resource-manager has created it again.
func (in inputs) withoutToken() {
	for _, d := range in.deployments {
		if in.options.Simulated || !d.needsToken() {
			continue
		}
		for i := range in.machines {
			m := &in.machines[i]
			issued := slices.ContainsFunc(in.tokens, func(t issued) bool { return t.machine == m.Name })
			if m.Deployment == d.Name && !m.WasReady && !m.Orphaned && !issued {
				m.Failed = true
			}
		}
	}
}

// revoke deletes the tokens of machines that are nodes or gone, and those that have expired.
func (in inputs) revoke(out *outcome) {
	for _, token := range in.tokens {
		at := slices.IndexFunc(in.machines, func(m Machine) bool { return m.Name == token.machine })
		needed := at >= 0 && !in.machines[at].WasReady && in.machines[at].staying() && in.now.Before(token.expires)
		switch {
		case !needed && !token.deleting:
			out.Plan.Tombstones = append(out.Plan.Tombstones, flow.Tombstone{Key: token.key})
		case needed && (out.Next.IsZero() || token.expires.Before(out.Next)):
			out.Next = token.expires
		}
	}
}
