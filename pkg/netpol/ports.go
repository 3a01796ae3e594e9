package netpol

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
)

// Port is a port of Pods.
type Port struct {
	// Protocol is TCP, UDP or SCTP.
	Protocol corev1.Protocol
	// Port is a number, or the name of a port of a container.
	Port intstr.IntOrString
	// EndPort is the last port of a range; 0 for a single port.
	EndPort int32
}

// id returns "<service>-<protocol>-<port>", which is part of the names of policies and labels.
func (p Port) id(service string) string {
	return service + "-" + strings.ToLower(string(p.Protocol)) + "-" + p.Port.String()
}

// String returns "<protocol>/<port>".
func (p Port) String() string {
	text := string(p.Protocol) + "/" + p.Port.String()
	if p.EndPort != 0 {
		text += "-" + strconv.Itoa(int(p.EndPort))
	}
	return text
}

func (p Port) forPolicy() networkingv1.NetworkPolicyPort {
	result := networkingv1.NetworkPolicyPort{Protocol: ptr.To(p.Protocol), Port: ptr.To(p.Port)}
	if p.EndPort != 0 {
		result.EndPort = ptr.To(p.EndPort)
	}
	return result
}

func comparePorts(a, b Port) int {
	return cmp.Or(cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Port.IntVal, b.Port.IntVal),
		cmp.Compare(a.Port.StrVal, b.Port.StrVal), cmp.Compare(a.EndPort, b.EndPort))
}

// targetOf returns the port of the Pods behind a port of a Service, with the defaults of the API server.
func targetOf(port corev1.ServicePort) (Port, error) {
	target := port.TargetPort
	if target == intstr.FromInt32(0) || target == intstr.FromString("") {
		target = intstr.FromInt32(port.Port)
	}
	return checkPort(networkingv1.NetworkPolicyPort{Protocol: &port.Protocol, Port: &target})
}

// readPorts reads a JSON list of ports.
func readPorts(text string) ([]Port, error) {
	var list []*networkingv1.NetworkPolicyPort
	if err := decode(text, &list); err != nil {
		return nil, err
	}
	if list == nil {
		return nil, errors.New("must be a list of ports, for example [{\"port\":8080,\"protocol\":\"TCP\"}]")
	}
	ports := make([]Port, 0, len(list))
	for i, one := range list {
		if one == nil {
			return nil, fmt.Errorf("port %d of the list is null", i)
		}
		port, err := checkPort(*one)
		if err != nil {
			return nil, fmt.Errorf("port %d of the list: %w", i, err)
		}
		ports = append(ports, port)
	}
	return ports, nil
}

// checkPort validates a port as the API server does, so that a single invalid port does not affect others. The default
// protocol is TCP, as usual in Kubernetes. A port is required, because all ports would be open without it.
func checkPort(port networkingv1.NetworkPolicyPort) (Port, error) {
	result := Port{Protocol: ptr.Deref(port.Protocol, "")}
	switch result.Protocol {
	case "":
		result.Protocol = corev1.ProtocolTCP
	case corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP:
	default:
		return Port{}, fmt.Errorf("protocol %q is not one of TCP, UDP and SCTP", result.Protocol)
	}
	if port.Port == nil {
		return Port{}, errors.New("it has no port")
	}
	result.Port = *port.Port
	if number, err := strconv.ParseInt(port.Port.StrVal, 10, 32); err == nil && port.Port.Type == intstr.String {
		result.Port = intstr.FromInt32(int32(number))
	}
	if result.Port.Type == intstr.String {
		if texts := validation.IsValidPortName(result.Port.StrVal); len(texts) > 0 {
			return Port{}, fmt.Errorf("%q is not the name of a port: %s", result.Port.StrVal, strings.Join(texts, "; "))
		}
		if port.EndPort != nil {
			return Port{}, errors.New("endPort requires a numeric port")
		}
		return result, nil
	}
	if texts := validation.IsValidPortNum(int(result.Port.IntVal)); len(texts) > 0 {
		return Port{}, fmt.Errorf("port %d: %s", result.Port.IntVal, strings.Join(texts, "; "))
	}
	if port.EndPort != nil {
		if *port.EndPort < result.Port.IntVal || *port.EndPort > 65535 {
			return Port{}, fmt.Errorf("endPort %d must be between port %d and 65535", *port.EndPort, result.Port.IntVal)
		}
		result.EndPort = *port.EndPort
	}
	return result, nil
}

// decode decodes one JSON value. Unknown fields are an error, because a misspelled field of a selector would make it
// match everything.
func decode(text string, into any) error {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return fmt.Errorf("not valid JSON: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is unexpected data after the JSON list")
	}
	return nil
}
