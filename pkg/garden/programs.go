package garden

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/gardenerprograms"
	"github.com/trellis-k8s/trellis/pkg/userfiles"
)

// The files of the audit log of the garden's API server.
const (
	volumeAuditPolicy, pathAuditPolicy   = "audit-policy", "/etc/apiserver/audit-policy"
	volumeAuditWebhook, pathAuditWebhook = "audit-webhook", "/etc/apiserver/audit-webhook"
	fileAuditPolicy, fileKubeconfig      = "audit-policy.yaml", "kubeconfig.yaml"
)

// gardenerArguments returns the arguments of the garden's API server for its settings.
func (in Inputs) gardenerArguments() ([]any, error) {
	config := in.gardener()
	var all []string
	if requests := config.Requests; requests != nil {
		for flag, limit := range map[string]*int32{
			"--max-requests-inflight=": requests.MaxNonMutatingInflight, "--max-mutating-requests-inflight=": requests.MaxMutatingInflight,
		} {
			if limit != nil {
				all = append(all, flag+strconv.Itoa(int(*limit)))
			}
		}
	}
	if chance := config.GoAwayChance; chance != nil {
		all = append(all, "--goaway-chance="+strconv.FormatFloat(*chance, 'f', -1, 64))
	}
	if most := config.ShootAdminKubeconfigMaxExpiration; most != nil {
		all = append(all, "--shoot-admin-kubeconfig-max-expiration="+most.Duration.String())
	}
	if caches := config.WatchCacheSizes; caches != nil {
		if caches.Default != nil {
			all = append(all, "--default-watch-cache-size="+strconv.Itoa(int(*caches.Default)))
		}
		if sizes := watchCacheSizes(caches.Resources); sizes != "" {
			all = append(all, "--watch-cache-sizes="+sizes)
		}
	}
	var enabled, disabled []string
	for i, plugin := range config.AdmissionPlugins {
		switch {
		case plugin.Config != nil || plugin.KubeconfigSecretName != nil:
			return nil, fmt.Errorf("spec.virtualCluster.gardener.gardenerAPIServer.admissionPlugins[%d]: this version cannot configure the plugin %s",
				i, plugin.Name)
		case ptr.Deref(plugin.Disabled, false):
			disabled = append(disabled, plugin.Name)
		default:
			enabled = append(enabled, plugin.Name)
		}
	}
	for flag, names := range map[string][]string{"--enable-admission-plugins=": enabled, "--disable-admission-plugins=": disabled} {
		if len(names) > 0 {
			slices.Sort(names)
			all = append(all, flag+strings.Join(names, ","))
		}
	}
	slices.Sort(all)
	return asAny(append(all, in.auditArguments()...)), nil
}

func watchCacheSizes(resources []corev1beta1.ResourceWatchCacheSize) string {
	var sizes []string
	for _, each := range resources {
		resource := each.Resource
		if group := ptr.Deref(each.APIGroup, ""); group != "" {
			resource += "." + group
		}
		sizes = append(sizes, resource+"#"+strconv.Itoa(int(each.CacheSize)))
	}
	return strings.Join(sizes, ",")
}

// auditArguments returns the arguments for the audit log of the garden's API server.
func (in Inputs) auditArguments() []string {
	config := in.gardener()
	var all []string
	if auditPolicyOf(config.AuditConfig) != "" {
		all = append(all, "--audit-policy-file="+pathAuditPolicy+"/"+fileAuditPolicy)
	}
	if hook := config.AuditWebhook; hook != nil {
		all = append(all, "--audit-webhook-config-file="+pathAuditWebhook+"/"+fileKubeconfig)
		if hook.BatchMaxSize != nil {
			all = append(all, "--audit-webhook-batch-max-size="+strconv.Itoa(int(*hook.BatchMaxSize)))
		}
		if version := ptr.Deref(hook.Version, ""); version != "" {
			all = append(all, "--audit-webhook-version="+version)
		}
	}
	return all
}

// addAudit mounts the files of the audit log.
func (in Inputs) addAudit(values *gardenerprograms.Values) error {
	files, err := in.gardenerAuditFiles()
	if err != nil {
		return err
	}
	for _, file := range files {
		name := file.GetName()
		if strings.HasPrefix(name, volumeAuditPolicy) {
			values.Volumes[volumeAuditPolicy] = gardenerprograms.SecretSource(map[string]string{fileAuditPolicy: name + "/" + fileAuditPolicy})
			values.Mounts[volumeAuditPolicy] = pathAuditPolicy
			continue
		}
		values.Volumes[volumeAuditWebhook] = gardenerprograms.SecretSource(map[string]string{fileKubeconfig: name + "/" + fileKubeconfig})
		values.Mounts[volumeAuditWebhook] = pathAuditWebhook
	}
	return nil
}

// gardenerAuditFiles returns the Secrets with the files of the audit log.
func (in Inputs) gardenerAuditFiles() ([]client.Object, error) {
	config := in.gardener()
	var objects []client.Object
	for _, each := range []struct {
		name, file string
		of         userfiles.Reference
	}{
		{volumeAuditPolicy, fileAuditPolicy, auditPolicyReference(config)}, {volumeAuditWebhook, fileKubeconfig, auditWebhookReference(config)},
	} {
		if each.of.Name == "" {
			continue
		}
		content, err := in.Files.Content(each.of)
		if err != nil {
			return nil, err
		}
		secret, err := gardenerprograms.File(in.Namespace, each.name, each.file, content)
		if err != nil {
			return nil, err
		}
		objects = append(objects, secret)
	}
	return objects, nil
}

// controllerManagerConfig returns the configuration of the controller-manager of the garden.
func (in Inputs) controllerManagerConfig() (map[string]any, error) {
	config := map[string]any{"logFormat": in.Config.LogFormat}
	given := in.virtual().Gardener.GardenerControllerManager
	if given == nil {
		return config, nil
	}
	setLevel(config, given.LogLevel)
	if len(given.DefaultProjectQuotas) > 0 {
		quotas, err := treeOf(given.DefaultProjectQuotas)
		if err != nil {
			return nil, err
		}
		config["controllers"] = map[string]any{"project": map[string]any{"quotas": quotas}}
	}
	return config, nil
}

// schedulerConfig returns the configuration of the scheduler.
func (in Inputs) schedulerConfig() map[string]any {
	config := map[string]any{"logFormat": in.Config.LogFormat}
	if given := in.virtual().Gardener.GardenerScheduler; given != nil {
		setLevel(config, given.LogLevel)
		if given.Strategy != nil {
			config["schedulers"] = map[string]any{"shoot": map[string]any{"candidateDeterminationStrategy": string(*given.Strategy)}}
		}
	}
	return config
}

// admissionControllerConfig returns the configuration of the admission controller.
func (in Inputs) admissionControllerConfig() map[string]any {
	server := map[string]any{"webhooks": map[string]any{"tls": map[string]any{"serverCertDir": pathAdmissionCertificate}}}
	config := map[string]any{"logFormat": in.Config.LogFormat, "server": server}
	given := in.virtual().Gardener.GardenerAdmissionController
	if given == nil {
		return config
	}
	setLevel(config, given.LogLevel)
	if limits := given.ResourceAdmissionConfiguration; limits != nil {
		if tree, err := treeOf(limits); err == nil { // it was read from JSON
			server["resourceAdmissionConfiguration"] = tree
		}
	}
	return config
}

func setLevel(config map[string]any, level *string) {
	if level := ptr.Deref(level, ""); level != "" {
		config["logLevel"] = level
	}
}

// treeOf returns a value as it is in JSON.
func treeOf(value any) (any, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encode a setting: %w", err)
	}
	var tree any
	if err := json.Unmarshal(text, &tree); err != nil {
		return nil, fmt.Errorf("read a setting: %w", err)
	}
	return tree, nil
}

func asAny(texts []string) []any {
	all := make([]any, 0, len(texts))
	for _, text := range texts {
		all = append(all, text)
	}
	return all
}

func auditPolicyOf(config *corev1beta1.AuditConfig) string {
	if config == nil || config.AuditPolicy == nil || config.AuditPolicy.ConfigMapRef == nil {
		return ""
	}
	return config.AuditPolicy.ConfigMapRef.Name
}

func auditWebhookOf(hook *operatorv1alpha1.AuditWebhook) string {
	if hook == nil {
		return ""
	}
	return hook.KubeconfigSecretName
}
