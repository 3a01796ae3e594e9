package monitoring

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// area is the region in which a chart draws its lines: its pixels, and the corresponding times and values.
type area struct {
	left, top, width, height float64
	from, to, low, high      float64
	log                      bool
}

func (a area) x(at float64) float64 { return a.left + a.width*(at-a.from)/max(a.to-a.from, 1) }

func (a area) y(value float64) float64 {
	low, high := a.low, a.high
	if a.log {
		value, low, high = math.Log10(max(value, low)), math.Log10(low), math.Log10(high)
	}
	return a.top + a.height*(1-(value-low)/max(high-low, 1e-12))
}

// ticks are the values of the horizontal grid lines.
func (a area) ticks() (values []float64) {
	if a.log {
		for value := a.low; value <= a.high*1.001; value *= 10 {
			values = append(values, value)
		}
		return values
	}
	for i := range 5 {
		values = append(values, a.low+(a.high-a.low)*float64(i)/4)
	}
	return values
}

// areaOf returns the area for series. Stacked series need room for their sum.
func areaOf(p *panel, all []drawn, width, height float64) area {
	legend := float64(min(len(all), 6)*legendLine + 6)
	a := area{left: axisWidth, top: chartTop + 6, width: width - axisWidth - 10, height: height - chartTop - legend - 28, low: math.Inf(1), from: math.Inf(1)}
	a.log = p.FieldConfig.Defaults.Custom.ScaleDistribution.Type == "log"
	sums := map[float64]float64{}
	for _, one := range all {
		for _, point := range one.points {
			a.from, a.to = min(a.from, point[0]), max(a.to, point[0])
			sums[point[0]] += point[1]
			value := point[1]
			if p.stacked() {
				value = sums[point[0]]
			}
			a.high = max(a.high, value)
			if point[1] > 0 || !a.log {
				a.low = min(a.low, point[1])
			}
		}
	}
	if a.log {
		a.low, a.high = math.Pow(10, math.Floor(math.Log10(a.low))), math.Pow(10, math.Ceil(math.Log10(max(a.high, 1e-9))))
		return a
	}
	if p.FieldConfig.Defaults.Min != nil {
		a.low = *p.FieldConfig.Defaults.Min
	}
	if a.high <= a.low {
		a.high = a.low + 1
	}
	a.high = nice(a.high)
	return a
}

// nice returns the next round number that is not smaller.
func nice(value float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(value)))
	for _, step := range []float64{1, 1.2, 1.6, 2, 3, 4, 6, 8, 10} {
		if value <= step*power*1.0001 {
			return step * power
		}
	}
	return value
}

func (p *panel) stacked() bool { return p.FieldConfig.Defaults.Custom.Stacking.Mode == "normal" }

// chart draws lines over time, with axes and a legend with the last and the greatest value.
func (l look) chart(p *panel, width, height float64) string {
	all, unit := p.series(), p.FieldConfig.Defaults.Unit
	if len(all) == 0 {
		return fmt.Sprintf(`<text x='%f' y='%f' fill='%s' text-anchor="middle">No data</text>`, width/2, height/2, l.faint)
	}
	var text strings.Builder
	a := areaOf(p, all, width, height)
	for _, value := range a.ticks() {
		fmt.Fprintf(&text, `<line x1='%f' x2='%f' y1='%f' y2='%[3]f' stroke='%s'/><text x='%f' y='%f' fill='%s' font-size="10" text-anchor="end">%s</text>`,
			a.left, a.left+a.width, a.y(value), l.grid, a.left-4, a.y(value)+4, l.faint, in(unit, value))
	}
	for i := range 4 {
		at := a.from + (a.to-a.from)*float64(i)/3
		fmt.Fprintf(&text, `<text x='%f' y='%f' fill='%s' font-size="10" text-anchor='%s'>%s</text>`,
			a.x(at), a.top+a.height+14, l.faint, []string{"start", "middle", "middle", "end"}[i], clock(at))
	}
	sums := map[float64]float64{}
	for i, one := range all {
		colour := lines[i%len(lines)]
		var path strings.Builder
		for k, point := range one.points {
			value := point[1]
			if p.stacked() {
				sums[point[0]] += value
				value = sums[point[0]]
			}
			fmt.Fprintf(&path, "%s%.1f %.1f", map[bool]string{true: "M", false: "L"}[k == 0], a.x(point[0]), a.y(value))
		}
		fmt.Fprintf(&text, `<path d='%s' fill="none" stroke='%s' stroke-width="1.5"/>`, path.String(), colour)
		if len(one.points) == 1 {
			fmt.Fprintf(&text, `<circle cx='%f' cy='%f' r="2" fill='%s'/>`, a.x(one.points[0][0]), a.y(one.points[0][1]), colour)
		}
		if i >= 6 {
			continue
		}
		y := a.top + a.height + 32 + float64(i*legendLine)
		fmt.Fprintf(&text, `<rect x="12" y='%f' width="12" height="3" fill='%s'/><text x="30" y='%f' fill='%s' font-size="11">%s</text>`,
			y-5, colour, y, l.text, html.EscapeString(one.name))
		fmt.Fprintf(&text, `<text x='%f' y='%f' fill='%s' font-size="11" text-anchor="end">last %s, max %s</text>`,
			width-8, y, l.faint, in(unit, one.last()), in(unit, one.most()))
	}
	if more := len(all) - 6; more > 0 {
		fmt.Fprintf(&text, `<text x='%f' y="22" fill='%s' font-size="11" text-anchor="end">and %d more</text>`, width-8, l.faint, more)
	}
	return text.String()
}
