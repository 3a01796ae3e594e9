package controlplane

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
)

// Parts of an OperatingSystemConfig in the contract.
const (
	unitKubelet             = "kubelet.service"
	pathKubeletConfig       = "/var/lib/kubelet/config/kubelet"
	pathKernelSettings      = "/etc/sysctl.d/99-k8s-general.conf"
	pathCloudProviderConfig = "/var/lib/kubelet/cloudprovider.conf"
	modeCloudProviderConfig = 0o644

	encodingPlain, encodingBase64 = "", "b64"
)

// operatingSystemConfig calls the methods for an OperatingSystemConfig.
func (m mutator) operatingSystemConfig(ctx context.Context, c Context, wanted, live *extensionsv1alpha1.OperatingSystemConfig) error {
	if live == nil {
		live = &extensionsv1alpha1.OperatingSystemConfig{}
	}
	if wanted.Spec.Purpose == extensionsv1alpha1.OperatingSystemConfigPurposeProvision {
		return errors.Join(
			m.ensurer.EnsureProvisionUnits(ctx, c, &wanted.Spec.Units, live.Spec.Units),
			m.ensurer.EnsureProvisionFiles(ctx, c, &wanted.Spec.Files, live.Spec.Files),
		)
	}
	version, err := kubeletVersion(ctx, c, wanted)
	if err != nil {
		return err
	}
	if err := m.kubelet(ctx, c, version, wanted, live); err != nil {
		return err
	}
	if err := changeText(pathKernelSettings, wanted.Spec.Files, live.Spec.Files, func(wanted, live *string) error {
		return m.ensurer.EnsureKernelSettings(ctx, c, wanted, live)
	}); err != nil {
		return err
	}
	content, err := m.ensurer.KubeletCloudProviderConfig(ctx, c, version)
	if err != nil {
		return err
	}
	if content != "" {
		SetFile(&wanted.Spec.Files, TextFile(pathCloudProviderConfig, modeCloudProviderConfig, content))
	}
	if wanted.Spec.CRIConfig != nil {
		if err := m.ensurer.EnsureCRIConfig(ctx, c, wanted.Spec.CRIConfig, live.Spec.CRIConfig); err != nil {
			return err
		}
	}
	return errors.Join(
		m.ensurer.EnsureUnits(ctx, c, &wanted.Spec.Units, live.Spec.Units),
		m.ensurer.EnsureFiles(ctx, c, &wanted.Spec.Files, live.Spec.Files),
	)
}

// kubeletVersion returns the version of kubelet for a configuration: that of the worker pool, or that of the Shoot.
func kubeletVersion(ctx context.Context, c Context, config *extensionsv1alpha1.OperatingSystemConfig) (string, error) {
	cluster, err := c.Cluster(ctx)
	if err != nil {
		return "", err
	}
	pool := config.Labels[constants.LabelWorkerPool]
	for _, worker := range cluster.Shoot.Spec.Provider.Workers {
		if worker.Name == pool && worker.Kubernetes != nil && worker.Kubernetes.Version != nil {
			return *worker.Kubernetes.Version, nil
		}
	}
	return cluster.Shoot.Spec.Kubernetes.Version, nil
}

// kubelet calls the methods for the unit and the configuration of kubelet.
func (m mutator) kubelet(ctx context.Context, c Context, version string, wanted, live *extensionsv1alpha1.OperatingSystemConfig) error {
	if unit := findUnit(wanted.Spec.Units, unitKubelet); unit != nil && unit.Content != nil {
		options, err := parseUnit(unit.Content)
		if err != nil {
			return fmt.Errorf("read the unit %s: %w", unitKubelet, err)
		}
		var before []UnitOption
		if stored := findUnit(live.Spec.Units, unitKubelet); stored != nil {
			if before, err = parseUnit(stored.Content); err != nil {
				return fmt.Errorf("read the stored unit %s: %w", unitKubelet, err)
			}
		}
		changed, err := m.ensurer.EnsureKubeletUnit(ctx, c, version, options, before)
		if err != nil {
			return err
		}
		if err := renderUnit(unit, changed); err != nil {
			return fmt.Errorf("write the unit %s: %w", unitKubelet, err)
		}
	}
	return changeText(pathKubeletConfig, wanted.Spec.Files, live.Spec.Files, func(wanted, live *string) error {
		config, err := parseObject(wanted)
		if err != nil {
			return fmt.Errorf("read %s: %w", pathKubeletConfig, err)
		}
		before, err := parseObject(live)
		if err != nil {
			return fmt.Errorf("read the stored %s: %w", pathKubeletConfig, err)
		}
		unchanged := config.DeepCopy()
		if err := m.ensurer.EnsureKubeletConfiguration(ctx, c, version, config, before); err != nil {
			return err
		}
		if equality.Semantic.DeepEqual(unchanged, config) {
			return nil // retain gardenlet's formatting
		}
		text, err := yaml.Marshal(config.Object)
		if err != nil {
			return fmt.Errorf("write %s: %w", pathKubeletConfig, err)
		}
		*wanted = string(text)
		return nil
	})
}

// parseObject parses an object in YAML. It returns nil for nil.
func parseObject(text *string) (*unstructured.Unstructured, error) {
	if text == nil {
		return nil, nil
	}
	object := &unstructured.Unstructured{Object: map[string]any{}}
	if err := yaml.Unmarshal([]byte(*text), &object.Object); err != nil {
		return nil, err
	}
	return object, nil
}

// changeText calls change for the content of a file, if the file exists and its content is inline.
func changeText(path string, wanted, live []extensionsv1alpha1.File, change func(wanted, live *string) error) error {
	file := findFile(wanted, path)
	if file == nil || file.Content.Inline == nil {
		return nil
	}
	text, err := decode(file.Content.Inline)
	if err != nil {
		return fmt.Errorf("read the file %s: %w", path, err)
	}
	var before *string
	if stored := findFile(live, path); stored != nil && stored.Content.Inline != nil {
		content, err := decode(stored.Content.Inline)
		if err != nil {
			return fmt.Errorf("read the stored file %s: %w", path, err)
		}
		before = &content
	}
	changed := text
	if err := change(&changed, before); err != nil {
		return err
	}
	if changed != text {
		file.Content.Inline.Data = encode(file.Content.Inline.Encoding, changed)
	}
	return nil
}

func decode(inline *extensionsv1alpha1.FileContentInline) (string, error) {
	switch inline.Encoding {
	case encodingPlain:
		return inline.Data, nil
	case encodingBase64:
		text, err := base64.StdEncoding.DecodeString(inline.Data)
		return string(text), err
	}
	return "", fmt.Errorf("the encoding %q is not known", inline.Encoding)
}

func encode(encoding, text string) string {
	if encoding == encodingBase64 {
		return base64.StdEncoding.EncodeToString([]byte(text))
	}
	return text
}

// TextFile returns a file with a text.
func TextFile(path string, mode uint32, text string) extensionsv1alpha1.File {
	return extensionsv1alpha1.File{Path: path, Permissions: ptr.To(mode), Content: extensionsv1alpha1.FileContent{
		Inline: &extensionsv1alpha1.FileContentInline{Encoding: encodingBase64, Data: encode(encodingBase64, text)},
	}}
}
