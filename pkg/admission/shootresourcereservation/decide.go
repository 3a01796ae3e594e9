package shootresourcereservation

import (
	"k8s.io/apimachinery/pkg/api/resource"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

const gibibyte = int64(1) << 30

// static returns the reservations that do not depend on the machine.
func static() gardencorev1beta1.KubeletConfigReserved {
	return gardencorev1beta1.KubeletConfigReserved{CPU: quantity("80m"), Memory: quantity("1Gi"), PID: quantity("20k")}
}

// byMachineType returns the reservations for a machine type, by the formula of Google Kubernetes Engine.
func byMachineType(machine *gardencorev1beta1.MachineType) gardencorev1beta1.KubeletConfigReserved {
	return gardencorev1beta1.KubeletConfigReserved{
		CPU: resource.NewMilliQuantity(reservedCPU(machine.CPU.Value()), resource.DecimalSI), Memory: reservedMemory(machine.Memory.Value()), PID: quantity("20k"),
	}
}

// reservedCPU returns thousandths of a core: 60 for the first core, 10 for the second, 5 each for the third and the fourth,
// 2.5 for each further one.
func reservedCPU(cores int64) int64 {
	reserved := int64(60)
	if cores > 1 {
		reserved += 10
	}
	if cores > 2 {
		reserved += (min(cores, 4) - 2) * 5
	}
	if cores > 4 {
		reserved += (cores - 4) * 5 / 2
	}
	return reserved
}

// reservedMemory returns 255 MiB for less than 1 GiB, else 25 % of the first 4 GiB, 20 % of the next 4, 10 % of the next 8, 6 %
// of the next 112, and 2 % of the rest. Each part is rounded down as in Gardener, since nodes are replaced if a value changes.
func reservedMemory(memory int64) *resource.Quantity {
	if memory < gibibyte {
		return quantity("255Mi")
	}
	part := func(from, to int64) int64 { return max(0, min(memory, to*gibibyte)-from*gibibyte) }
	reserved := part(0, 4)/4 + part(4, 8)/5 + part(8, 16)/10 + part(16, 128)/100*6
	reserved += max(0, memory-128*gibibyte) / 50
	return resource.NewQuantity(reserved, resource.DecimalSI)
}

// only returns the values that are set in a mask, too; none without a mask.
func only(values gardencorev1beta1.KubeletConfigReserved, mask *gardencorev1beta1.KubeletConfigReserved) gardencorev1beta1.KubeletConfigReserved {
	if mask == nil {
		return gardencorev1beta1.KubeletConfigReserved{}
	}
	return gardencorev1beta1.KubeletConfigReserved{
		CPU: set(values.CPU, mask.CPU != nil), Memory: set(values.Memory, mask.Memory != nil), PID: set(values.PID, mask.PID != nil),
	}
}

// without returns the values that are not set in a mask.
func without(values gardencorev1beta1.KubeletConfigReserved, mask *gardencorev1beta1.KubeletConfigReserved) gardencorev1beta1.KubeletConfigReserved {
	return gardencorev1beta1.KubeletConfigReserved{
		CPU: set(values.CPU, mask.CPU == nil), Memory: set(values.Memory, mask.Memory == nil), PID: set(values.PID, mask.PID == nil),
	}
}

func set(value *resource.Quantity, wanted bool) *resource.Quantity {
	if !wanted {
		return nil
	}
	return value
}

func quantity(text string) *resource.Quantity {
	parsed := resource.MustParse(text)
	return &parsed
}
