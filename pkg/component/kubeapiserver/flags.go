package kubeapiserver

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/component/internal/parts"
	issuers "github.com/trellis-k8s/trellis/pkg/issuer"
	"github.com/trellis-k8s/trellis/pkg/secrets"
)

// audience is accepted in all ServiceAccount tokens, in addition to the audiences of the Shoot.
const audience = "gardener"

// withoutWorkers are the APIs that are disabled in a cluster without nodes unless the Shoot enables them. Gardener also
// disables autoscaling/v2, but the resource-manager of this project watches HorizontalPodAutoscalers.
var withoutWorkers = []string{
	"apps/v1", "batch/v1", "policy/v1/poddisruptionbudgets", "storage.k8s.io/v1/csidrivers", "storage.k8s.io/v1/csinodes",
}

// RuntimeConfig returns the APIs that are enabled or disabled. nodes is set for a shoot with workers.
func RuntimeConfig(config corev1beta1.KubeAPIServerConfig, nodes bool) map[string]bool {
	apis := map[string]bool{}
	for _, api := range withoutWorkers {
		if !nodes {
			apis[api] = false
		}
	}
	maps.Copy(apis, config.RuntimeConfig)
	return apis
}

// flags returns the arguments of the program, by group.
func flags(values Values) []string {
	return slices.Concat(
		access(values), admissionFlags(values), storage(values), serviceAccounts(values), frontProxy(), kubelets(values),
		[]string{"--service-cluster-ip-range=" + strings.Join(values.ServiceNetworks, ",")}, egress(values),
		[]string{"--audit-policy-file=" + pathAudit + "/" + fileAudit},
		tuning(values.Config), apis(values), tolerations(values.Config), logging(values.Config.Logging), values.Garden.flags(),
	)
}

func access(values Values) []string {
	all := []string{
		"--secure-port=" + strconv.Itoa(port), "--bind-address=::", "--external-hostname=" + values.ExternalHostname,
		"--client-ca-file=" + pathClientCA + "/" + secrets.KeyBundleCert, "--enable-bootstrap-token-auth=true",
		"--token-auth-file=" + pathToken + "/" + secrets.KeyStaticTokens,
		"--authentication-config=" + pathAuthentication + "/" + fileConfig, "--authorization-config=" + pathAuthorization + "/" + fileConfig,
		"--tls-cert-file=" + pathServer + "/tls.crt", "--tls-private-key-file=" + pathServer + "/tls.key",
	}
	if values.AdvertiseAddress != "" { // all replicas have the same one, and the lease keeps it while one of them stops
		all = append(all, "--advertise-address="+values.AdvertiseAddress, "--endpoint-reconciler-type=lease")
	}
	if version := ptr.Deref(values.Config.TLSMinVersion, ""); version != "" {
		all = append(all, "--tls-min-version="+version)
	}
	return all
}

// admissionFlags enables the plugins of the Shoot in addition to the default ones. NodeRestriction is enabled only if there are
// kubelets to restrict: without workers it would wait for CSIDrivers, an API that is disabled, and never become ready.
func admissionFlags(values Values) []string {
	enabled, disabled := []string{}, []string{}
	if values.Mounted.hasNodes() {
		enabled = append(enabled, "NodeRestriction")
	}
	for _, plugin := range values.Config.AdmissionPlugins {
		if ptr.Deref(plugin.Disabled, false) {
			disabled = append(disabled, plugin.Name)
			continue
		}
		enabled = append(enabled, plugin.Name)
	}
	all := []string{"--admission-control-config-file=" + pathAdmission + "/" + fileAdmission}
	for flag, names := range map[string][]string{"enable": enabled, "disable": disabled} {
		if len(names) > 0 {
			slices.Sort(names)
			all = append(all, "--"+flag+"-admission-plugins="+strings.Join(slices.Compact(names), ","))
		}
	}
	slices.Sort(all)
	return all
}

func storage(values Values) []string {
	events := "https://" + values.NamePrefix + "etcd-events-client:2379"
	overrides := []string{"/events#" + events, "events.k8s.io/events#" + events}
	for _, resource := range values.Garden.ofEvents() {
		overrides = append(overrides, resource+"#"+events)
	}
	return []string{
		"--etcd-servers=https://" + values.NamePrefix + "etcd-main-client:2379", "--etcd-servers-overrides=" + strings.Join(overrides, ","),
		"--etcd-cafile=" + pathEtcdCA + "/" + secrets.KeyBundleCert,
		"--etcd-certfile=" + pathEtcdClient + "/tls.crt", "--etcd-keyfile=" + pathEtcdClient + "/tls.key",
		"--encryption-provider-config=" + pathEncryption + "/" + secrets.KeyEncryptionConfiguration,
	}
}

// Issuer returns the issuer of ServiceAccount tokens, and the other accepted issuers. managed is the managed issuer, empty for none. hostname is
// the host of the default issuer.
func Issuer(config corev1beta1.KubeAPIServerConfig, hostname, managed string) (issuer string, accepted []string) {
	own := "https://" + hostname
	given := ptr.Deref(config.ServiceAccountConfig, corev1beta1.ServiceAccountConfig{})
	issuer = cmp.Or(managed, ptr.Deref(given.Issuer, ""), own)
	// Tokens issued before the Shoot had this issuer stay valid.
	for _, each := range append(slices.Clone(given.AcceptedIssuers), ptr.Deref(given.Issuer, ""), own) {
		if each != "" && each != issuer && !slices.Contains(accepted, each) {
			accepted = append(accepted, each)
		}
	}
	return issuer, accepted
}

func serviceAccounts(values Values) []string {
	issuer, accepted := Issuer(values.Config, values.ExternalHostname, values.ManagedIssuer)
	all := []string{"--service-account-issuer=" + issuer}
	for _, each := range accepted {
		all = append(all, "--service-account-issuer="+each)
	}
	if values.ManagedIssuer != "" { // others cannot read the keys from the API server itself
		all = append(all, "--service-account-jwks-uri="+issuer+issuers.PathKeys)
	}
	all = append(all,
		"--service-account-signing-key-file="+pathServiceAccountKey+"/"+secrets.KeyRSA,
		"--service-account-key-file="+pathServiceAccountKeys+"/"+secrets.KeyBundleKey,
	)
	audiences := slices.Clone(values.Config.APIAudiences)
	if len(audiences) == 0 {
		audiences = []string{"kubernetes"}
	}
	if !slices.Contains(audiences, audience) {
		audiences = append(audiences, audience)
	}
	all = append(all, "--api-audiences="+strings.Join(audiences, ","))
	if given := values.Config.ServiceAccountConfig; given != nil {
		if given.ExtendTokenExpiration != nil {
			all = append(all, fmt.Sprintf("--service-account-extend-token-expiration=%t", *given.ExtendTokenExpiration))
		}
		if given.MaxTokenExpiration != nil {
			all = append(all, "--service-account-max-token-expiration="+given.MaxTokenExpiration.Duration.String())
		}
	}
	return all
}

func frontProxy() []string {
	return []string{
		"--proxy-client-cert-file=" + pathAggregator + "/tls.crt", "--proxy-client-key-file=" + pathAggregator + "/tls.key",
		"--requestheader-client-ca-file=" + pathFrontProxyCA + "/" + secrets.KeyBundleCert, "--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--requestheader-group-headers=X-Remote-Group", "--requestheader-username-headers=X-Remote-User", "--enable-aggregator-routing=true",
	}
}

func tuning(config corev1beta1.KubeAPIServerConfig) []string {
	all := []string{
		"--http2-max-streams-per-connection=1000", "--livez-grace-period=1m", "--shutdown-delay-duration=15s", "--profiling=false",
		"--event-ttl=" + ptr.Deref(config.EventTTL, metav1.Duration{Duration: time.Hour}).Duration.String(),
	}
	if requests := config.Requests; requests != nil {
		for flag, limit := range map[string]*int32{
			"--max-requests-inflight=":          requests.MaxNonMutatingInflight,
			"--max-mutating-requests-inflight=": requests.MaxMutatingInflight,
		} {
			if limit != nil {
				all = append(all, flag+strconv.Itoa(int(*limit)))
			}
		}
	}
	if caches := config.WatchCacheSizes; caches != nil {
		if caches.Default != nil {
			all = append(all, "--default-watch-cache-size="+strconv.Itoa(int(*caches.Default)))
		}
		var sizes []string
		for _, each := range caches.Resources {
			resource := each.Resource
			if group := ptr.Deref(each.APIGroup, ""); group != "" {
				resource += "." + group
			}
			sizes = append(sizes, resource+"#"+strconv.Itoa(int(each.CacheSize)))
		}
		if len(sizes) > 0 {
			all = append(all, "--watch-cache-sizes="+strings.Join(sizes, ","))
		}
	}
	slices.Sort(all)
	return all
}

func apis(values Values) []string {
	var all []string
	if switches := RuntimeConfig(values.Config, values.Mounted.hasNodes()); len(switches) > 0 {
		all = append(all, "--runtime-config="+parts.Switches(switches))
	}
	if gates := values.Config.FeatureGates; len(gates) > 0 {
		all = append(all, "--feature-gates="+parts.Switches(gates))
	}
	return all
}

func tolerations(config corev1beta1.KubeAPIServerConfig) []string {
	var all []string
	for _, each := range []struct {
		flag    string
		seconds *int64
	}{
		{"--default-not-ready-toleration-seconds=", config.DefaultNotReadyTolerationSeconds},
		{"--default-unreachable-toleration-seconds=", config.DefaultUnreachableTolerationSeconds},
	} {
		if each.seconds != nil {
			all = append(all, each.flag+strconv.FormatInt(*each.seconds, 10))
		}
	}
	return all
}

func logging(config *corev1beta1.APIServerLogging) []string {
	if config == nil {
		return []string{"--v=2"}
	}
	all := []string{"--v=" + strconv.Itoa(int(ptr.Deref(config.Verbosity, 2)))}
	if verbosity := config.HTTPAccessVerbosity; verbosity != nil {
		all = append(all, "--vmodule=httplog="+strconv.Itoa(int(*verbosity)))
	}
	return all
}
