package validation

import (
	"fmt"
	"net/mail"
	"regexp"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // images of the programs have no files with time zones

	"github.com/robfig/cron/v3"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/maintenance"
)

// mailDomain matches addresses in a domain of at least two parts. The last part has two letters or more.
var mailDomain = regexp.MustCompile(`@([a-zA-Z0-9-]+\.)+[a-zA-Z]{2,}$`)

// maxConfig is the maximum size of a ConfigMap.
const maxConfig = 1 << 20

func validateAddons(spec *v1beta1.ShootSpec, c *shootContext, path *field.Path) field.ErrorList {
	addons := spec.Addons
	errs := c.needsNodes(true, path)
	errs = append(errs, c.removed(true, "1.35", path)...)
	evaluation := ptr.Deref(spec.Purpose, v1beta1.ShootPurposeEvaluation) == v1beta1.ShootPurposeEvaluation
	const why = "addons are for Shoots with the purpose evaluation"
	if dashboard := addons.KubernetesDashboard; dashboard != nil && dashboard.Enabled {
		at := path.Child("kubernetesDashboard")
		errs = append(errs, forbidden(!evaluation, at.Child("enabled"), why)...)
		errs = append(errs, oneOf(ptr.Deref(dashboard.AuthenticationMode, ""), at.Child("authenticationMode"),
			v1beta1.KubernetesDashboardAuthModeToken)...)
	}
	nginx, at := addons.NginxIngress, path.Child("nginxIngress")
	if nginx == nil {
		return errs
	}
	errs = append(errs, forbidden(nginx.Enabled && !evaluation, at.Child("enabled"), why)...)
	errs = append(errs, trafficPolicy(nginx.ExternalTrafficPolicy, at.Child("externalTrafficPolicy"))...)
	for i, value := range nginx.LoadBalancerSourceRanges {
		_, found := prefixOf(value, at.Child("loadBalancerSourceRanges").Index(i))
		errs = append(errs, found...)
	}
	size := 0
	for _, key := range sortedKeys(nginx.Config) {
		errs = append(errs, messages(validation.IsConfigMapKey(key), key, at.Child("config").Key(key))...)
		size += len(nginx.Config[key])
	}
	if size > maxConfig {
		errs = append(errs, field.TooLong(at.Child("config"), "", maxConfig))
	}
	return errs
}

func validateShootDNS(dns *v1beta1.DNS, c *shootContext, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if dns.Domain != nil {
		errs = append(errs, dnsSubdomain(*dns.Domain, path.Child("domain"))...)
	}
	primaries, pairs := 0, map[string]bool{}
	for i, provider := range dns.Providers {
		at := path.Child("providers").Index(i)
		kind := ptr.Deref(provider.Type, "")
		errs = append(errs, c.removed(ptr.Deref(provider.SecretName, "") != "", "1.35", at.Child("secretName"))...)
		if name, ref := provider.SecretName, provider.CredentialsRef; name != nil && ref != nil && !c.atLeast("1.35") &&
			(ref.Kind != secret.Kind || ref.Name != *name) {
			errs = append(errs, field.Invalid(at.Child("secretName"), *name, "must be the name of the Secret in credentialsRef"))
		}
		if ptr.Deref(provider.Primary, false) {
			if primaries++; primaries > 1 {
				errs = append(errs, field.Forbidden(at.Child("primary"), "there can be one primary provider only"))
			}
			if kind != "" && kind != v1beta1.DNSUnmanaged && dns.Domain == nil {
				errs = append(errs, field.Required(path.Child("domain"), "the primary provider manages it"))
			}
		} else if provider.CredentialsRef == nil && kind != v1beta1.DNSUnmanaged {
			errs = append(errs, field.Required(at.Child("credentialsRef"), "a provider that is not the primary one needs credentials"))
		}
		ref := provider.CredentialsRef
		if ref == nil {
			continue
		}
		errs = append(errs, localCredentials(*ref, at.Child("credentialsRef"))...)
		errs = append(errs, forbidden(kind == v1beta1.DNSUnmanaged, at.Child("credentialsRef"), "the type unmanaged has no credentials")...)
		errs = append(errs, required(kind, at.Child("type"))...)
		pair := strings.Join([]string{kind, ref.APIVersion, ref.Kind, ref.Name}, "|")
		if pairs[pair] {
			errs = append(errs, field.Duplicate(at, ref.Name))
		}
		pairs[pair] = true
	}
	return errs
}

// isSchedule reports whether a text is a cron expression with five fields. The library panics on a time zone without an expression
// ("TZ=x"), and accepts descriptors such as @every, which are not schedules of a day.
func isSchedule(text string) bool {
	if len(strings.Fields(text)) != 5 || strings.Contains(text, "TZ=") {
		return false
	}
	_, err := cron.ParseStandard(text)
	return err == nil
}

func validateHibernation(hibernation *v1beta1.Hibernation, c *shootContext, path *field.Path) field.ErrorList {
	errs := forbidden(c.selfHosted, path, "a self-hosted Shoot cannot be switched off")
	seen := map[string]bool{}
	for i, schedule := range hibernation.Schedules {
		at := path.Child("schedules").Index(i)
		if schedule.Start == nil && schedule.End == nil {
			errs = append(errs, field.Required(at.Child("start"), "a schedule has a start, an end or both"))
		}
		for _, one := range []struct {
			name  string
			value *string
		}{{"start", schedule.Start}, {"end", schedule.End}} {
			if one.value == nil {
				continue
			}
			if !isSchedule(*one.value) {
				errs = append(errs, field.Invalid(at.Child(one.name), *one.value, "must be a cron expression with five fields, such as 0 20 * * *"))
			}
			if seen[*one.value] {
				errs = append(errs, field.Duplicate(at.Child(one.name), *one.value))
			}
			seen[*one.value] = true
		}
		if schedule.Location != nil {
			if _, err := time.LoadLocation(*schedule.Location); err != nil {
				errs = append(errs, field.Invalid(at.Child("location"), *schedule.Location,
					"must be a time zone of the IANA database, such as Europe/Berlin"))
			}
		}
	}
	return errs
}

func validateReceivers(receivers []string, path *field.Path) field.ErrorList {
	errs := uniqueValues(receivers, path)
	for i, receiver := range receivers {
		if address, err := mail.ParseAddress(receiver); err != nil || address.Address != receiver || !mailDomain.MatchString(receiver) {
			errs = append(errs, field.Invalid(path.Index(i), receiver, "must be an e-mail address"))
		}
	}
	return errs
}

const (
	minWindow = 30 * time.Minute
	maxWindow = 6 * time.Hour
)

func validateMaintenance(settings *v1beta1.Maintenance, c *shootContext, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if update := settings.AutoUpdate; update != nil {
		errs = append(errs, c.needsNodes(update.MachineImageVersion != nil, path.Child("autoUpdate", "machineImageVersion"))...)
	}
	if window := settings.TimeWindow; window != nil {
		errs = append(errs, validateWindow(window, path.Child("timeWindow"))...)
	}
	if settings.AutoRotation == nil || settings.AutoRotation.Credentials == nil {
		return errs
	}
	rotation, at := settings.AutoRotation.Credentials, path.Child("autoRotation", "credentials")
	errs = append(errs, c.needsNodes(rotation.SSHKeypair != nil, at.Child("sshKeypair"))...)
	for name, config := range map[string]*v1beta1.MaintenanceRotationConfig{
		"observability": rotation.Observability, "sshKeypair": rotation.SSHKeypair, "etcdEncryptionKey": rotation.ETCDEncryptionKey,
	} {
		if config == nil || config.RotationPeriod == nil || config.RotationPeriod.Duration == 0 {
			continue
		}
		if period := config.RotationPeriod.Duration; period < 30*time.Minute || period > 90*24*time.Hour {
			errs = append(errs, field.Invalid(at.Child(name, "rotationPeriod"), period.String(), "must be 0 or from 30m to 2160h"))
		}
	}
	return errs
}

func validateWindow(window *v1beta1.MaintenanceTimeWindow, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for name, value := range map[string]string{"begin": window.Begin, "end": window.End} {
		if _, err := maintenance.ParseTime(value); err != nil {
			errs = append(errs, field.Invalid(path.Child(name), value, "must be a time of the day with its offset, such as 220000+0100"))
		}
	}
	if len(errs) > 0 {
		return errs
	}
	parsed, err := maintenance.Parse(window.Begin, window.End)
	if err != nil || parsed.Length() < minWindow || parsed.Length() > maxWindow {
		errs = append(errs, field.Invalid(path, fmt.Sprintf("%s to %s", window.Begin, window.End), "must last from 30 minutes to 6 hours"))
	}
	return errs
}

func validateSystemComponents(components *v1beta1.SystemComponents, c *shootContext, path *field.Path) field.ErrorList {
	if components == nil {
		return nil
	}
	errs := c.needsNodes(true, path)
	if components.CoreDNS == nil {
		return errs
	}
	if autoscaling := components.CoreDNS.Autoscaling; autoscaling != nil {
		errs = append(errs, oneOf(autoscaling.Mode, path.Child("coreDNS", "autoscaling", "mode"),
			v1beta1.CoreDNSAutoscalingModeHorizontal, v1beta1.CoreDNSAutoscalingModeClusterProportional)...)
	}
	if components.CoreDNS.Rewriting == nil {
		return errs
	}
	at := path.Child("coreDNS", "rewriting", "commonSuffixes")
	suffixes := slices.Clone(components.CoreDNS.Rewriting.CommonSuffixes)
	for i := range suffixes {
		suffixes[i] = strings.TrimPrefix(suffixes[i], ".")
		errs = append(errs, dnsSubdomain(suffixes[i], at.Index(i))...)
		if !strings.Contains(suffixes[i], ".") {
			errs = append(errs, field.Invalid(at.Index(i), suffixes[i], "must have at least two parts"))
		}
	}
	return append(errs, uniqueValues(suffixes, at)...)
}
