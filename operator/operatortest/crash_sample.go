package operatortest

import "hash/fnv"

// crashPoint is where a run is to crash: at the n-th write.
type crashPoint struct {
	n      int
	moment Moment
}

// crashPoints are those of a sweep with so many writes: all of them, or a sample of at least five.
func crashPoints(writes int, scenario Scenario) []crashPoint {
	all := make([]crashPoint, 0, 2*writes)
	for n := 1; n <= writes; n++ {
		all = append(all, crashPoint{n, Before}, crashPoint{n, After})
	}
	if !scenario.Sample {
		return all
	}
	return sample(all, scenario.Name)
}

// sample takes the first, the last, and every k-th between them, at least three of those. Moments alternate, so that an odd k has both
// of them. Where it begins depends on the name: scenarios that are alike are crashed at other places, and each always at the same.
func sample(all []crashPoint, name string) []crashPoint {
	const between = 3
	if len(all) <= between+2 {
		return all
	}
	last := len(all) - 1
	k := (last - 1) / between
	if k%2 == 0 {
		k--
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	points := []crashPoint{all[0]}
	for i := 1 + int(h.Sum32()%uint32(k)); i < last; i += k { //nolint:gosec // k is small
		points = append(points, all[i])
	}
	return append(points, all[last])
}
