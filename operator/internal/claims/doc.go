// Package claims has one operator work for an object whose status several would write. A claim is the annotation [Annotation]
// with the identity of a framework. It is written before the finalizer is, and before anything else:
//
//	c := &claims.Claims{Client: d.Client, Kind: v1alpha1.MachineServiceKind}
//	f, err := d.NewFramework(framework.Config{
//		Source: c.Source(source, source), …  // the resource set begins with c.Resource()
//	})
//	c.Owner = f
//
// Who finds the claim of another one does nothing for the object but clean up what it made there before, when the object is deleted;
// the error, which the framework tells in an event, names who has it. A claim of a former name is taken over. A plan takes no claim,
// and fails where there is another one.
//
// Where parts of one status are different frameworks', each has Claims of a Part. Where several operators may work for an object and
// only its status is one's, the set begins with c.Reports() and the source is as it was.
//
// A claim stays when its operator is uninstalled: nobody else can tell that from one that is down. It ends with the object, and by
// taking the annotation off, which is for people to do. What runs under another name then has it at once.
package claims
