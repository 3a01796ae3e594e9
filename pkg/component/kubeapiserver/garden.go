package kubeapiserver

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

// The files of webhooks of a garden.
const (
	fileAuditWebhook          = "audit-webhook-kubeconfig.yaml"
	fileAuthenticationWebhook = "authentication-webhook-kubeconfig.yaml"
	fileSeedAuthorizer        = "seed-authorizer-kubeconfig.yaml"
)

// GardenSettings are the settings that only the API server of a garden has.
type GardenSettings struct {
	// AuditWebhook receives audit events, and AuthenticationWebhook authenticates users; nil for none.
	AuditWebhook          *AuditWebhook
	AuthenticationWebhook *AuthenticationWebhook
	// EventResources are further resources in the etcd for Events, as "group/resource".
	EventResources []string
	// SNI are the host names for which the certificate [Mounted.SNI] is used. A name may start with "*.".
	SNI []string
	// SeedAuthorizer decides about requests of gardenlets; nil for none.
	SeedAuthorizer *SeedAuthorizer
}

// AuditWebhook receives audit events.
type AuditWebhook struct {
	Kubeconfig []byte
	// BatchMaxSize is the number of events in one request; 0 for the default of Kubernetes. Version is the API version of events.
	BatchMaxSize int32
	Version      string
}

// AuthenticationWebhook authenticates users.
type AuthenticationWebhook struct {
	Kubeconfig []byte
	// CacheTTL is how long answers are kept; 0 for the default of Kubernetes. Version is the API version of requests.
	CacheTTL time.Duration
	Version  string
}

// SeedAuthorizer is the webhook that decides about requests of gardenlets.
type SeedAuthorizer struct {
	URL string
	// CABundle verifies the webhook, in PEM.
	CABundle []byte
}

// flags returns the flags for the settings.
func (g *GardenSettings) flags() []string {
	if g == nil {
		return nil
	}
	var all []string
	if hook := g.AuditWebhook; hook != nil {
		all = append(all, "--audit-webhook-config-file="+pathWebhookKubeconfigs+"/"+fileAuditWebhook)
		if hook.BatchMaxSize > 0 {
			all = append(all, "--audit-webhook-batch-max-size="+strconv.Itoa(int(hook.BatchMaxSize)))
		}
		if hook.Version != "" {
			all = append(all, "--audit-webhook-version="+hook.Version)
		}
	}
	if hook := g.AuthenticationWebhook; hook != nil {
		all = append(all, "--authentication-token-webhook-config-file="+pathWebhookKubeconfigs+"/"+fileAuthenticationWebhook)
		if hook.CacheTTL > 0 {
			all = append(all, "--authentication-token-webhook-cache-ttl="+hook.CacheTTL.String())
		}
		if hook.Version != "" {
			all = append(all, "--authentication-token-webhook-version="+hook.Version)
		}
	}
	if len(g.SNI) > 0 {
		all = append(all, fmt.Sprintf("--tls-sni-cert-key=%s/tls.crt,%s/tls.key:%s", pathSNI, pathSNI, strings.Join(g.SNI, ",")))
	}
	return all
}

// ofEvents returns the further resources in the etcd for Events, sorted, in the form of the flag.
func (g *GardenSettings) ofEvents() []string {
	if g == nil {
		return nil
	}
	return slices.Sorted(slices.Values(g.EventResources))
}

// kubeconfigs returns the files with the kubeconfigs of webhooks.
func (g *GardenSettings) kubeconfigs() map[string][]byte {
	files := map[string][]byte{}
	if g == nil {
		return files
	}
	if g.AuditWebhook != nil {
		files[fileAuditWebhook] = g.AuditWebhook.Kubeconfig
	}
	if g.AuthenticationWebhook != nil {
		files[fileAuthenticationWebhook] = g.AuthenticationWebhook.Kubeconfig
	}
	if hook := g.SeedAuthorizer; hook != nil {
		files[fileSeedAuthorizer] = []byte(`apiVersion: v1
kind: Config
current-context: authorizer
contexts:
- name: authorizer
  context: {cluster: authorizer, user: authorizer}
clusters:
- name: authorizer
  cluster: {server: ` + hook.URL + `, certificate-authority-data: ` + base64.StdEncoding.EncodeToString(hook.CABundle) + `}
users:
- name: authorizer
  user: {}
`)
	}
	return files
}

// authorizers returns the authorizer of gardenlets. Its answers are not cached, because they depend on the objects of the garden. If it does
// not answer, gardenlets are denied, and no other user is concerned.
func (g *GardenSettings) authorizers() []any {
	if g == nil || g.SeedAuthorizer == nil {
		return nil
	}
	const shortest = "1ns"
	return []any{tree{"type": "Webhook", "name": "seed-authorizer", "webhook": tree{
		"authorizedTTL": shortest, "unauthorizedTTL": shortest, "timeout": "10s", "failurePolicy": "Deny",
		"subjectAccessReviewVersion": "v1", "matchConditionSubjectAccessReviewVersion": "v1",
		"matchConditions": []any{tree{"expression": "'" + constants.SeedsGroup + "' in request.groups || " +
			"request.groups.exists(e, e.startsWith('system:serviceaccounts:" + constants.PrefixSeedNamespace + "'))"}},
		"connectionInfo": tree{"type": "KubeConfigFile", "kubeConfigFile": pathWebhookKubeconfigs + "/" + fileSeedAuthorizer},
	}}}
}
